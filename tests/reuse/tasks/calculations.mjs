export const CALCULATIONS = [];
