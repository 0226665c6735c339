// The one import of modules that draw: elements by tagged templates, hooks and signals.
export { Component, Fragment, createElement, render } from './vendor/preact.js';
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from './vendor/signals.js';
import { createElement } from './vendor/preact.js';
import htm from './vendor/htm.js';

/**
 * html`<p class=${name}>${text}</p>` makes an element; text of others goes through `Text` of ui/text.js.
 * @type {(strings: TemplateStringsArray, ...values: unknown[]) => any}
 */
export const html = htm.bind(createElement);
