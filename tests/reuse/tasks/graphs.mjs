export const GRAPHS = [];
