// A plot over the last minutes.
import { SPAN_SECONDS } from "./history.js";
import { html, useEffect, useLayoutEffect, useRef } from "./view.js";
// @ts-types="npm:uplot@1.6.32"
import uPlot from "./vendor/uplot.js";
/** @import { Sample } from "./history.js" */

const HEIGHT = 132;

/** @typedef {{ readonly key: Exclude<keyof Sample, "time">, readonly label: string, readonly color: string }} Line */

/**
 * A colour as a canvas takes it; the property's own value may be light-dark().
 *
 * @param {HTMLElement} element
 * @param {string} name
 */
function colorOf(element, name) {
  element.style.color = `var(${name})`;
  return getComputedStyle(element).color;
}

/**
 * @param {readonly Line[]} lines
 * @param {HTMLElement} element
 * @param {(value: number) => string} format
 * @returns {uPlot.Options}
 */
function optionsOf(lines, element, format) {
  /** @param {string} name */
  const color = (name) => colorOf(element, name);
  const axis = {
    stroke: () => color("--dim"),
    grid: { stroke: () => color("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true, range: (_plot, _min, max) => [max - SPAN_SECONDS, max] },
      y: { range: (_plot, _min, max) => [0, Math.max(max * 1.15, 1)] },
    },
    axes: [
      { ...axis, size: 24, space: 90, values: (_plot, ticks) => ticks.map(clock) },
      { ...axis, size: 56, space: 34, values: (_plot, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ label, color: name }) => ({
        label,
        stroke: () => color(name),
        width: 1.5,
        points: { show: false },
      })),
    ],
  };
}

/** @param {number} seconds */
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

/**
 * @param {readonly Line[]} lines
 * @param {readonly Sample[]} samples
 * @returns {uPlot.AlignedData}
 */
const dataOf = (lines, samples) => [
  samples.map(({ time }) => time),
  ...lines.map(({ key }) => samples.map((sample) => sample[key])),
];

/**
 * @param {object} props
 * @param {string} props.title
 * @param {readonly Line[]} props.lines
 * @param {readonly Sample[]} props.samples
 * @param {(value: number) => string} props.format For the axis, and for the newest values.
 */
export function Plot({ title, lines, samples, format }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  useLayoutEffect(() => {
    const element = /** @type {HTMLDivElement} */ (place.current);
    const made = plot.current = new uPlot(
      optionsOf(lines, element, format),
      dataOf(lines, samples),
      element,
    );
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    resize.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => made.redraw(false);
    dark.addEventListener("change", redraw);
    return () => {
      dark.removeEventListener("change", redraw);
      resize.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(lines, samples)), [samples]);
  const newest = samples.at(-1);
  /** @param {Line} line */
  const valueOf = ({ key }) => {
    const value = newest?.[key];
    return value === null || value === undefined ? "–" : format(value);
  };
  return html`
    <figure class="plot card">
      <figcaption>
        <h3>${title}</h3>
        <dl>
          ${lines.map((line) =>
            html`
              <div>
                <dt><span class=${`swatch ${line.color.slice(2)}`} aria-hidden="true"></span>${line.label}</dt>
                <dd>${valueOf(line)}</dd>
              </div>
            `
          )}
        </dl>
      </figcaption>
      <div ref=${place} aria-hidden="true"></div>
    </figure>
  `;
}
