// Numbers, sizes, durations and times in words. Pure, so that Node tests it.

const THIN = ' ';

/** 12345 → "12 345". */
export function count(value) {
  if (!Number.isFinite(value)) return '–';
  const sign = value < 0 ? '−' : '';
  return sign + String(Math.abs(Math.round(value))).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** "1 call", "3 calls". */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A share 0..1 as "12 %". */
export function percent(share) {
  if (!Number.isFinite(share)) return '–';
  const value = share * 100;
  return `${value > 0 && value < 1 ? '<1' : value < 100 && value > 99 ? '>99' : Math.round(value)} %`;
}

/** A duration in its two largest units: "0.4 ms", "35 ms", "1.25 s", "3 min 5 s", "2 h 10 min", "3 d 4 h". */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 1) return ms === 0 ? '0 ms' : `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  const hours = Math.round(minutes / 60);
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function two(large, largeUnit, small, smallUnit) {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

/** A size: "12 B", "4.2 KiB", "1.0 MiB". */
export function size(bytes) {
  if (!Number.isFinite(bytes)) return '–';
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(bytes < 10240 ? 1 : 0)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** How long ago: "now", "12 s ago", "5 min ago", "3 h ago", then the day. */
export function ago(at, now = Date.now()) {
  const seconds = Math.round((now - at) / 1000);
  if (seconds < 2) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return day(at, now);
}

/** "12 Mar", or "12 Mar 2024" in another year. */
export function day(at, now = Date.now()) {
  const date = new Date(at);
  const year = date.getFullYear() === new Date(now).getFullYear() ? '' : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The time of day with seconds, and the day if that is not today. */
export function clock(at, now = Date.now()) {
  const date = new Date(at);
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
  return date.toDateString() === new Date(now).toDateString() ? time : `${day(at, now)} ${time}`;
}

/** The full time, for titles. */
export function exact(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : `${day(at, 0)} ${clock(at, at)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
