export const DATES = [];
