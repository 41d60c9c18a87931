// The report of a whole training in, its page out: scores, curves, examples, lengths, exposure, failures, data, card, records.
import { barOf, drawBar, drawTheme } from "./bar";
import { chartFigure, type Series } from "./chart";
import { button, counted, dress, figure, make, part, unchanged } from "./dom";
import { differing } from "./difference";
import { checkParts, failureParts } from "./doctor";
import { prose } from "./prose";
import { readRecord, type Record } from "./record";
import { drawSheet } from "./sheet";
import type { State } from "./state";
import { openStore, type Store } from "./store";
import { tips } from "./tip";
import type { Example, Report, Score } from "./wire";

export function startReport(page: HTMLElement, report: Report): void {
  const records = report.records.map(readRecord);
  const store: Store = openStore((state) => draw(state), (state) => ({ ...state, tab: "look" }));
  const draw = (state: State): void => {
    drawTheme(state);
    drawBar(barOf(page), state, { models: [], lesson: false, title: `report · ${report.model.name}` }, store.act);
    const main = part(page, "main", "main report");
    if (!unchanged(main, report)) main.append(...sections(report));
    drawRecords(part(main, "section", "records", { "aria-label": "records" }), records, state, store);
  };
  document.title = `${report.model.name}: report`;
  tips(page);
  page.addEventListener("keydown", (event) => event.key === "Escape" && store.act.clear());
  store.redraw();
}

function section(title: string, ...children: (Node | null)[]): HTMLElement {
  const name = title.toLowerCase().replace(/\W+/g, "-");
  return make("section", { class: "chapter", "data-section": name }, make("h2", {}, title), ...children);
}

function sections(report: Report): HTMLElement[] {
  const { name, task, preset, parameters } = report.model;
  const head = make("div", { class: "masthead" }, make("h1", {}, name),
    make("p", { class: "hint" }, [preset, task, `${counted(parameters)} parameters`, report.made].filter(Boolean).join(" · ")));
  const all: (HTMLElement | null)[] = [
    head, scores(report), curves(report), beside(lengths(report), exposure(report), calibration(report), confusion(report)), examples(report),
    report.failures ? section("What fails", ...failureParts(report.failures)) : null,
    report.data.length ? section("Data", facts(report.data), ...(report.check ? checkParts(report.check) : [])) : null,
    report.card ? section("Card", make("div", { class: "prose" }, ...prose(report.card))) : null,
  ];
  return all.filter((one): one is HTMLElement => one !== null);
}

/** Chapters of one picture each, two in a row where there is room. */
function beside(...chapters: (HTMLElement | null)[]): HTMLElement {
  return make("div", { class: "halves" }, ...chapters);
}

function scores(report: Report): HTMLElement {
  const rows = report.scores.map(scoreRow);
  return section("Scores", make("div", { class: "scores" }, ...rows), report.facts.length ? facts(report.facts) : null);
}

/** The value large, its interval as a line on the way from nought to all. */
function scoreRow(score: Score): HTMLElement {
  const shown = rounded(score.value, score);
  const interval = score.low !== null && score.high !== null ? `${rounded(score.low, score)} … ${rounded(score.high, score)}` : "";
  const track = make("span", { class: "interval", "aria-hidden": true });
  if (score.percent) {
    const span = make("span", { class: "span" });
    const [low, high] = [within(score.low ?? score.value), within(score.high ?? score.value)];
    span.style.left = `${low}%`;
    span.style.width = `${Math.max(0.4, high - low)}%`;
    const dot = make("span", { class: "spot" });
    dot.style.left = `${within(score.value)}%`;
    track.append(span, dot);
  }
  const said = `${score.name} ${shown}${score.percent ? " %" : ""}${interval ? `, 95 % interval ${interval}` : ""}${score.signature ? ` · ${score.signature}` : ""}`;
  return make("div", { class: "score", "data-score": score.name, "data-value": score.value, "data-tip": said, tabindex: 0, "aria-label": said },
    make("span", { class: "score-name" }, score.name), make("span", { class: "score-value" }, shown, score.percent ? make("small", {}, " %") : null),
    score.percent ? track : make("span"), make("span", { class: "hint" }, interval));
}

/** Error rates may be beyond all. */
function within(value: number): number {
  return Math.min(100, Math.max(0, value));
}

function rounded(value: number, { percent }: Score): string {
  return percent ? value.toFixed(1) : figure(value);
}

const LONG = 24; // letters that stand beside a name; a sentence has a line of its own

function facts(rows: readonly (readonly [string, string | number])[]): HTMLElement {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of rows) {
    const sentence = typeof value === "string" && value.length > LONG;
    list.append(make("div", { class: sentence ? "sentence-fact" : null }, make("dt", {}, name), make("dd", {}, typeof value === "number" ? figure(value) : value)));
  }
  return list;
}

function curves(report: Report): HTMLElement | null {
  const { metric, points } = report.curves ?? { metric: "", points: [] };
  if (!points.length) return null;
  const line = (name: string, key: string): Series => ({
    name, points: points.flatMap((point) => (point[key] == null || point["step"] == null ? [] : [{ x: point["step"], y: point[key] }])),
  });
  const losses = [line("training", "loss"), line("validation", "valid_loss")].filter(({ points }) => points.length);
  const scored = [line(metric, `valid_${metric}`)].filter(({ points }) => points.length);
  return section("Curves", make("div", { class: "plots" },
    losses.length ? chartFigure({ title: "loss by step", x: "step", y: "loss", series: losses }) : null,
    scored.length ? chartFigure({ title: `validation ${metric} by step`, x: "step", y: metric, series: scored, ...bounds(report, metric) }) : null));
}

const PERCENT: readonly [number, number] = [0, 100];

/** Shares end at a hundred, and so do their axes. */
function bounds(report: Report, metric: string): { limits?: readonly [number, number] } {
  return report.scores.some(({ name, percent }) => name === metric && percent) ? { limits: PERCENT } : {};
}

function lengths(report: Report): HTMLElement | null {
  const found = report.by_length;
  if (!found?.bins.length) return null;
  const points = found.bins.map(({ from, to, count, value, low, high }, i) => ({ x: i, y: value, low, high, said: `length ${from} to ${to}: ${figure(value)} (${low === null ? "" : `${figure(low)} … ${figure(high ?? value)}, `}${count} examples)` }));
  const shares = found.metric === "right" || bounds(report, found.metric).limits !== undefined;
  const ticks = found.bins.map(({ from, to }, i) => ({ at: i, label: from === to ? `${from}` : `${from}–${to}` }));
  return section("By length", make("div", { class: "plots" }, chartFigure({ title: `${found.metric} by source length`, x: "source tokens", y: found.metric, series: [{ name: found.metric, points }], dots: true, ticks, ...(shares ? { limits: PERCENT } : {}) })));
}

function exposure(report: Report): HTMLElement | null {
  const found = report.exposure;
  if (!found) return null;
  const line = (name: "forced" | "free"): Series => ({ name: name === "forced" ? "given the truth" : "running free", points: found.by_position.map((one) => ({ x: one.position, y: one[name], said: `position ${one.position}: ${name} ${figure(one[name])} (${one.count} examples)` })) });
  const words = `Given the true beginning ${figure(found.forced)} % of tokens are right; running free ${figure(found.free)} %. ${(100 * found.left).toFixed(1)} % of the outputs leave the true path${found.returned === null ? "" : `; of these ${(100 * found.returned).toFixed(0)} % return to it`}.`;
  return section("Exposure", make("p", {}, words), make("div", { class: "plots" }, chartFigure({ title: "right tokens by position", x: "position in the output", y: "right, %", series: [line("forced"), line("free")], limits: PERCENT })));
}

function calibration(report: Report): HTMLElement | null {
  const bins = report.calibration?.filter(({ count }) => count > 0);
  if (!bins?.length) return null;
  const unit = bins.some(({ sure, right }) => sure > 1 || right > 1) ? 100 : 1;
  const points = bins.map(({ count, sure, right }) => ({ x: sure / unit, y: right / unit, said: `sure ${figure(sure)}, right ${figure(right)} (${count} answers)` }));
  return section("Calibration", make("div", { class: "plots" }, chartFigure({ title: "how often it was right when it was so sure", x: "confidence", y: "right", series: [{ name: "answers", points }], dots: true, diagonal: true, within: [0, 1] })));
}

function confusion(report: Report): HTMLElement | null {
  const found = report.confusion;
  if (!found?.labels.length) return null;
  const head = make("tr", {}, make("th", {}, "true ↓ said →"), ...found.labels.map((label) => make("th", { scope: "col" }, make("span", {}, label))));
  const rows = found.counts.map((counts, row) => {
    const sum = Math.max(1, counts.reduce((a, b) => a + b, 0));
    return make("tr", {}, make("th", { scope: "row" }, found.labels[row] ?? ""), ...counts.map((count, column) => {
      const cell = make("td", { "data-count": count, "data-tip": `${found.labels[row]} called ${found.labels[column]}: ${count}`, class: count / sum > 0.5 ? "strong" : "" }, count ? String(count) : "·");
      cell.style.setProperty("--weight", ((count / sum) ** 0.7).toFixed(3));
      return cell;
    }));
  });
  return section("Confusion", make("div", { class: "scroll", "data-picture": "confusion" }, make("table", { class: "confusion" }, head, ...rows)));
}

function examples(report: Report): HTMLElement | null {
  const { best, worst } = report.examples;
  if (best.length + worst.length === 0) return null;
  const group = (title: string, list: readonly Example[]): HTMLElement => make("div", {}, make("h3", {}, title), ...list.map(exampleRow));
  return section("Best and worst", make("div", { class: "two" }, group("best", best), group("worst", worst)));
}

function exampleRow(example: Example): HTMLElement {
  const [wanted, got] = [[...example.target], [...example.output]];
  const { after } = example.right || wanted.length * got.length > 40000 ? { after: new Set<number>() } : differing(wanted, got);
  const output = got.map((letter, i) => (after.has(i) ? make("mark", {}, letter) : letter));
  return make("div", { class: "pair", "data-right": String(example.right) },
    make("p", { class: "pair-source", dir: "auto" }, example.source.replace(/\t/g, " ⇥ ")),
    make("p", { class: "pair-output", dir: "auto" }, make("span", { class: "verdict", "aria-label": example.right ? "right" : "wrong" }, example.right ? "✓ " : "✗ "), ...output, make("span", { class: "value" }, ` ${figure(example.confidence)}`)),
    example.right ? null : make("p", { class: "pair-target hint", dir: "auto" }, `wanted: ${example.target}`));
}

function drawRecords(root: HTMLElement, records: readonly Record[], state: State, store: Store): void {
  root.hidden = records.length === 0;
  const number = Math.min(state.example, records.length - 1);
  const record = records[number];
  if (!record) return;
  const title = part(root, "h2", "records-title");
  title.textContent = "Where it looked";
  const chooser = part(root, "div", "chooser-row unsaved", { role: "group", "aria-label": "which example" });
  if (!chooser.firstChild) {
    const select = make("select", { id: "example", "aria-label": "example" });
    records.forEach((one, i) => select.append(make("option", { value: i }, `${i + 1}. ${one.source.text.replace(/\t/g, " ⇥ ").slice(0, 60)}`)));
    const go = (to: number): void => store.act.set({ example: (to + records.length) % records.length, selected: null, step: null });
    select.addEventListener("change", () => go(Number(select.value)));
    chooser.append(button("◀", { "aria-label": "example before" }, () => go(store.state().example - 1)), select, button("▶", { "aria-label": "next example" }, () => go(store.state().example + 1)));
  }
  const select = chooser.querySelector("select")!;
  if (select.value !== String(number)) select.value = String(number);
  const sheet = part(root, "section", "sheet");
  dress(sheet, { "aria-label": `record ${number + 1}` });
  drawSheet(sheet, { number: 0, state, record, original: record, changed: null, basis: record, selected: state.selected, live: false }, store.act);
}
