// A matrix in, pixels out: one pixel a cell, transparent to ink. What is drawn small or large is the browser's matter.
import type { Matrix } from "./matrix";

export type Ink = readonly [number, number, number];

/** The ink of the theme, from the style of the page. */
export function inkOf(element: Element): Ink {
  const value = getComputedStyle(element).getPropertyValue("--ink").trim();
  const found = /^#(..)(..)(..)$/.exec(value);
  if (!found) return [20, 50, 100];
  return [1, 2, 3].map((i) => Number.parseInt(found[i]!, 16)) as unknown as Ink;
}

export function paint(canvas: HTMLCanvasElement, matrix: Matrix, dark: (weight: number) => number, ink: Ink): void {
  canvas.width = Math.max(1, matrix.columns);
  canvas.height = Math.max(1, matrix.rows);
  const context = canvas.getContext("2d");
  if (!context || matrix.rows * matrix.columns === 0) return;
  const pixels = context.createImageData(matrix.columns, matrix.rows);
  for (let i = 0; i < matrix.rows * matrix.columns; i++) {
    pixels.data.set(ink, 4 * i);
    pixels.data[4 * i + 3] = Math.round(255 * dark(matrix.values[i] ?? 0));
  }
  context.putImageData(pixels, 0, 0);
}
