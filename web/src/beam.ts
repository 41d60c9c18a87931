// A panel in, its beam as a tree out: steps from left to right, the best above, the way to the output in ink.
import { select } from "d3-selection";
import { linkHorizontal } from "d3-shape";
import { figure, unchanged } from "./dom";
import type { Act, Panel } from "./panel";
import { quoted } from "./record";
import type { BeamNode } from "./wire";

const STRIDE = 64;
const LEAD = 24;
const ROW = 24;
const REJECTED = 3; // candidates that were not kept, shown at each step

interface Placed {
  readonly node: BeamNode;
  readonly x: number;
  readonly y: number;
  readonly from: { readonly x: number; readonly y: number };
}

/** Each node with its place: within a step those that were kept first, by their sum. */
function placed(nodes: readonly BeamNode[]): Placed[] {
  const steps = new Map<number, number[]>();
  nodes.forEach(({ step }, index) => steps.set(step, [...(steps.get(step) ?? []), index]));
  const spots = new Map<number, { x: number; y: number }>();
  for (const [step, members] of steps) {
    const order = members.sort((a, b) => Number(nodes[b]!.kept) - Number(nodes[a]!.kept) || nodes[b]!.sum - nodes[a]!.sum);
    const kept = order.filter((index) => nodes[index]!.kept).length;
    order.slice(0, kept + REJECTED).forEach((index, rank) => spots.set(index, { x: LEAD + step * STRIDE, y: 14 + rank * ROW }));
  }
  const root = { x: 4, y: 14 };
  return nodes.flatMap((node, index) => {
    const spot = spots.get(index);
    return spot ? [{ node, ...spot, from: spots.get(node.parent) ?? root }] : [];
  });
}

export function drawBeam(root: HTMLElement, panel: Panel, act: Act): void {
  const nodes = panel.record.beam ?? [];
  const step = panel.state.step;
  const held = panel.selected?.pinned && panel.selected.side === "target" ? panel.selected.index : step;
  if (held !== null) bringIntoView(root, held);
  if (unchanged(root, nodes, step)) return;
  const all = placed(nodes);
  const width = Math.max(...all.map(({ x }) => x)) + STRIDE;
  const height = Math.max(...all.map(({ y }) => y)) + 14;
  const picture = select(root).selectAll<SVGSVGElement, null>("svg").data([null]).join("svg")
    .attr("class", "beam").attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`)
    .attr("role", "img").attr("aria-label", `beam tree: ${nodes.length} nodes`);
  const shown = step === null ? all : all.filter(({ node }) => node.step <= step);
  edges(picture, shown);
  marks(picture, shown, panel, act);
}

function bringIntoView(root: HTMLElement, step: number): void {
  const x = LEAD + step * STRIDE;
  if (x < root.scrollLeft || x > root.scrollLeft + root.clientWidth - STRIDE) root.scrollLeft = Math.max(0, x - root.clientWidth / 2);
}

type Drawing = ReturnType<typeof typed>;

/** Only names the type of the drawing. */
function typed() {
  return select<HTMLElement, unknown>(document.body).selectAll<SVGSVGElement, null>("svg");
}

function kind(node: BeamNode): string {
  return node.best ? "best" : node.kept ? "kept" : "dropped";
}

function edges(picture: Drawing, shown: readonly Placed[]): void {
  const link = linkHorizontal<unknown, { source: [number, number]; target: [number, number] }, [number, number]>();
  const reach = ({ node }: Placed): number => 6 + 7 * Math.min(5, [...node.token].length);
  const parent = new Map(shown.map((one) => [`${one.x},${one.y}`, one]));
  picture.selectAll<SVGPathElement, Placed>("path").data(shown).join("path")
    .attr("class", ({ node }) => `edge-line ${kind(node)}`)
    .attr("d", ({ x, y, from }) => {
      const before = parent.get(`${from.x},${from.y}`);
      return link({ source: [from.x + (before ? reach(before) : 2), from.y], target: [x - 4, y] });
    });
}

function marks(picture: Drawing, shown: readonly Placed[], panel: Panel, act: Act): void {
  picture.selectAll<SVGTextElement, Placed>("text").data(shown).join("text")
    .attr("class", ({ node }) => `node ${kind(node)}`)
    .attr("x", ({ x }) => x).attr("y", ({ y }) => y).attr("dominant-baseline", "central")
    .attr("data-tip", ({ node }) => `${quoted(node.token)} · log probability ${figure(node.log)} · sum ${figure(node.sum)}${node.kept ? "" : " · not kept"}`)
    .text(({ node }) => clipped(node.token) + (node.ended ? " ■" : ""))
    .on("click", (_, { node }) => act.set({ step: node.step }))
    .on("pointerenter", (_, { node }) => {
      if (node.best) act.select({ panel: panel.number, side: "target", index: node.step, role: "query", across: null });
    })
    .on("pointerleave", () => act.leave());
}

function clipped(token: string): string {
  const letters = [...token.replace(/^ +$/, "␣")];
  return letters.length > 6 ? `${letters.slice(0, 5).join("")}…` : letters.join("");
}
