export const SERVERS = [];
