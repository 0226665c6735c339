// All capabilities, the latest used first. The first page is there when a page is drawn; the others follow.

import { get } from '../api.js';
import { useEffect, useMemo, useRef, useState } from '../html.js';

const PAGE = 200;

function page(offset, signal) {
  return get(`/api/capabilities?recent=true&limit=${PAGE}&offset=${offset}`, { signal }).then(({ capabilities }) => capabilities);
}

/** The first page. */
export function firstCapabilities(signal) {
  return page(0, signal);
}

/** All of them, as far as they have been read: `first` is the first page. */
export function useAllCapabilities(first) {
  const [rest, setRest] = useState([]);
  const complete = useRef(false);
  useEffect(() => {
    if (first.length < PAGE) {
      complete.current = true;
      setRest([]);
      return undefined;
    }
    const abort = new AbortController();
    (async () => {
      let all = [];
      for (let offset = PAGE; ; offset += PAGE) {
        const found = await page(offset, abort.signal);
        all = [...all, ...found];
        const whole = found.length < PAGE;
        // The first time they come page by page; later the list must not shrink while it is read.
        if (whole || !complete.current) setRest(all);
        complete.current ||= whole;
        if (whole) return;
      }
    })().catch(() => {});
    return () => abort.abort();
  }, [first]);
  return useMemo(() => {
    // Pages are read one after the other: what was used meanwhile moves to the front, and would be there twice.
    const known = new Set(first.map((capability) => capability.id));
    return [...first, ...rest.filter((capability) => !known.has(capability.id) && known.add(capability.id))];
  }, [first, rest]);
}
