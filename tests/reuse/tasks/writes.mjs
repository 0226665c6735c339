export const WRITES = [];
