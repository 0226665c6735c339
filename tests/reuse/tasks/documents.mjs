export const DOCUMENTS = [];
