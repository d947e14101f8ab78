// preact and htm, as all modules of the page use them. What stands in a template is escaped.
// @ts-types="npm:preact@11.2.0"
import { h } from "./vendor/preact.js";
// @ts-types="./vendor/htm.d.ts"
import htm from "./vendor/htm.js";

// @ts-types="npm:preact@11.2.0"
export { render } from "./vendor/preact.js";
// @ts-types="npm:preact@11.2.0/hooks"
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact_hooks.js";

/** A tagged template that makes elements. */
export const html = htm.bind(h);
