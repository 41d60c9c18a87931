// A panel in, layers × heads small out: a click makes one the heat map, alt-click or “o” switches it off.
import { figure, make, part, unchanged, dress } from "./dom";
import { inkOf, paint } from "./ink";
import { meanOf } from "./lens";
import type { Act, Panel } from "./panel";
import { switchable, type AttentionMap, type Record } from "./record";
import type { Off } from "./state";
import type { PerHead } from "./wire";

export function drawHeads(root: HTMLElement, panel: Panel, act: Act): void {
  const { record, state } = panel;
  root.hidden = record.maps.length === 0;
  const title = part(root, "figcaption", "title");
  if (!title.firstChild) title.append("heads");
  const scroll = part(root, "div", "scroll");
  const dark = inkOf(document.documentElement).join();
  if (!unchanged(scroll, record, dark)) structure(scroll, record, panel.live);
  hands.set(scroll, { panel, act });
  scroll.querySelectorAll<HTMLElement>("[data-head]").forEach((button) => {
    const { map, head } = named(button);
    const chosen = state.view === "attention" && state.map?.name === map && state.map.head === head;
    const off = head !== null && state.whatIf.off.some((one) => one.panel === panel.number && one.map === map && one.head === head);
    dress(button, { "aria-pressed": String(chosen) });
    button.classList.toggle("off", off);
    button.dataset["off"] = String(off);
  });
  const all = root.querySelector<HTMLElement>("[data-all]") ?? allButton(title, scroll);
  dress(all, { "aria-pressed": String(state.view === "attention" && state.map === null) });
  const said = panel.live && record.maps.some(({ name }) => switchable(name)) ? "click: look through it · alt-click or O: switch it off" : "click: look through it";
  const hint = part(root, "p", "hint unsaved");
  if (hint.textContent !== said) hint.textContent = said;
}

const hands = new WeakMap<HTMLElement, { panel: Panel; act: Act }>();

function allButton(title: HTMLElement, scroll: HTMLElement): HTMLElement {
  const all = make("button", { type: "button", class: "quiet unsaved", "data-all": true }, "mean of all");
  all.addEventListener("click", () => hands.get(scroll)?.act.set({ map: null, view: "attention" }));
  title.append(" ", all);
  return all;
}

function named(button: HTMLElement): { map: string; head: number | null } {
  const name = button.dataset["head"]!;
  const slash = name.lastIndexOf("/");
  const head = name.slice(slash + 1);
  return { map: name.slice(0, slash), head: head === "mean" ? null : Number(head) };
}

function structure(scroll: HTMLElement, record: Record, live: boolean): void {
  const focused = (document.activeElement as HTMLElement | null)?.dataset["head"];
  const table = make("div", { class: "grid", role: "group", "aria-label": "attention heads, layer by layer" });
  for (const map of record.maps) {
    const row = make("div", { class: "layer" }, make("span", { class: "layer-name", title: map.name }, map.name));
    const thumbs = make("div", { class: "thumbs" });
    if (map.heads.length > 1) thumbs.append(thumb(record, map, null, live));
    map.heads.forEach((_, head) => thumbs.append(thumb(record, map, head, live)));
    row.append(thumbs);
    table.append(row);
  }
  scroll.replaceChildren(table);
  listen(scroll);
  if (focused) scroll.querySelector<HTMLElement>(`[data-head="${CSS.escape(focused)}"]`)?.focus();
}

/** What the grid says of one head: where it looks, how sharply, and what the answer loses without it. */
function words(record: Record, map: AttentionMap, head: number | null): string {
  const name = head === null ? `${map.name}, mean of ${map.heads.length} heads` : `${map.name}, head ${head}`;
  const of = (list: readonly PerHead[] | undefined): number | null =>
    head === null ? null : list?.find((one) => one.name === map.name)?.heads[head] ?? null;
  const entropy = of(record.derived?.entropy);
  const importance = of(record.derived?.importance);
  return [
    name,
    head !== null && map.off.has(head) ? "switched off" : "",
    entropy === null ? "" : `entropy ${figure(entropy)} bits`,
    importance === null ? "" : `log probability lost without it ${figure(importance)}`,
    switchable(map.name) ? "" : "can not be switched off: all that was read goes through it",
  ].filter(Boolean).join(" · ");
}

function thumb(record: Record, map: AttentionMap, head: number | null, live: boolean): HTMLElement {
  const matrix = head === null ? meanOf(map) : map.heads[head]!;
  const canvas = make("canvas", { "aria-hidden": true });
  paint(canvas, matrix, (weight) => Math.max(0, Math.min(1, weight)) ** 0.7, inkOf(document.documentElement));
  const shape = Math.max(0.45, Math.min(1, matrix.rows / Math.max(1, matrix.columns)));
  canvas.style.height = `${Math.round(58 * shape)}px`;
  const said = words(record, map, head);
  const keys = live && head !== null && switchable(map.name) ? "o" : null;
  return make(
    "button",
    { type: "button", class: head === null ? "thumb all" : "thumb", "data-head": `${map.name}/${head ?? "mean"}`, "aria-label": said, "data-tip": said, "aria-keyshortcuts": keys },
    canvas,
    cross(),
    make("span", { class: "number" }, head === null ? "mean" : String(head)),
  );
}

/** Drawn over a head that is switched off. */
function cross(): SVGSVGElement {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  dress(drawing, { class: "cross", viewBox: "0 0 10 10", preserveAspectRatio: "none", "aria-hidden": true });
  for (const d of ["M1,1L9,9", "M9,1L1,9"]) {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    dress(line, { d, "vector-effect": "non-scaling-stroke" });
    drawing.append(line);
  }
  return drawing;
}

const listening = new WeakSet<HTMLElement>();

function listen(scroll: HTMLElement): void {
  if (listening.has(scroll)) return;
  listening.add(scroll);
  const found = (event: Event): HTMLElement | null => (event.target as Element).closest<HTMLElement>("[data-head]");
  scroll.addEventListener("click", (event) => {
    const button = found(event);
    if (!button) return;
    if (event.altKey) flip(scroll, button);
    else look(scroll, button);
  });
  scroll.addEventListener("keydown", (event) => {
    const button = found(event);
    if (!button) return;
    if (event.key === "o" || event.key === "O") flip(scroll, button);
    else if (event.key.startsWith("Arrow")) walk(scroll, button, event);
  });
}

function look(scroll: HTMLElement, button: HTMLElement): void {
  const { panel, act } = hands.get(scroll)!;
  const { map, head } = named(button);
  const again = panel.state.view === "attention" && panel.state.map?.name === map && panel.state.map.head === head;
  act.set({ map: again ? null : { name: map, head }, view: "attention" });
}

function flip(scroll: HTMLElement, button: HTMLElement): void {
  const { panel, act } = hands.get(scroll)!;
  const { map, head } = named(button);
  if (!panel.live || head === null || !switchable(map)) return;
  act.set({ whatIf: { ...panel.state.whatIf, off: flipped(panel.state.whatIf.off, { panel: panel.number, map, head }) }, show: "changed" });
}

function flipped(off: readonly Off[], one: Off): readonly Off[] {
  const rest = off.filter(({ panel, map, head }) => panel !== one.panel || map !== one.map || head !== one.head);
  return rest.length < off.length ? rest : [...off, one];
}

function walk(scroll: HTMLElement, button: HTMLElement, event: KeyboardEvent): void {
  event.preventDefault();
  const rows = Array.from(scroll.querySelectorAll(".thumbs"), (row) => Array.from(row.querySelectorAll<HTMLElement>("[data-head]")));
  const row = rows.findIndex((one) => one.includes(button));
  const column = rows[row]!.indexOf(button);
  const down = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const right = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const next = rows[row + down];
  next?.[Math.max(0, Math.min(next.length - 1, column + right))]?.focus();
}
