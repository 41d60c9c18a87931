// What the doctor found in, chapters of the report out: what fails and why, what is wrong with the data, what needs no learning.
import { counted, make } from "./dom";
import type { Baselines, Cause, Checked, Failures, Finding, Share } from "./wire";

/** The causes that stand out with their examples; the rest, which chance may have made, folded away. */
export function failureParts(found: Failures): HTMLElement[] {
  const clear = found.causes.filter(({ stands_out }) => stands_out);
  const others = found.causes.filter(({ stands_out }) => !stands_out);
  const counted_as = `Counted as failures: ${found.rule}.${found.left_out ? ` ${sentence(found.left_out)}` : ""}`;
  return [
    make("p", { class: "diagnosis" }, sentence(found.said)),
    make("p", { class: "hint" }, counted_as),
    ...clear.map((cause) => causeCard(cause)),
    ...(others.length ? [make("details", { class: "folded" }, make("summary", {}, `${others.length} more questions, with no more than chance in the answers`), ...others.map((cause) => causeCard(cause)))] : []),
  ];
}

function causeCard(cause: Cause): HTMLElement {
  const explained = cause.explains > 0 ? `goes with ${(100 * cause.explains).toFixed(0)} % of the failures` : "explains none of the failures";
  return make("div", { class: "cause", "data-cause": cause.kind, "data-out": String(cause.stands_out) },
    make("h3", {}, sentence(cause.said), make("span", { class: "hint" }, ` ${explained}`)),
    make("table", { class: "shares" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, ""), make("th", { scope: "col" }, "right"), make("th", { scope: "col", class: "wide" }, "95 % interval"), make("th", { scope: "col" }, "of"))),
      make("tbody", {}, shareRow("these", cause.inside), shareRow("the others", cause.rest))),
    ...(cause.stands_out ? cause.examples.map(exampleRow) : []),
    cause.stands_out ? make("p", { class: "cure" }, `Likely cure: ${cause.cure}.`) : null);
}

function shareRow(name: string, share: Share): HTMLElement {
  const track = make("span", { class: "interval", "aria-hidden": true });
  const span = make("span", { class: "span" });
  span.style.left = `${share.low}%`;
  span.style.width = `${Math.max(0.4, share.high - share.low)}%`;
  const dot = make("span", { class: "spot" });
  dot.style.left = `${share.value}%`;
  track.append(span, dot);
  return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, `${share.value.toFixed(1)} %`),
    make("td", { class: "wide" }, track, make("span", { class: "hint" }, `${share.low.toFixed(1)} … ${share.high.toFixed(1)}`)), make("td", {}, counted(share.count)));
}

function exampleRow([source, target, output]: readonly [string, string, string]): HTMLElement {
  return make("div", { class: "pair", "data-right": "false" },
    make("p", { class: "pair-source", dir: "auto" }, shortened(source.replace(/\t/g, " ⇥ "))),
    make("p", { class: "pair-output", dir: "auto" }, make("span", { class: "verdict", "aria-label": "wrong" }, "✗ "), shortened(output)),
    make("p", { class: "pair-target hint", dir: "auto" }, `wanted: ${shortened(target)}`));
}

/** What can be had without learning, and what is wrong with the examples. */
export function checkParts(found: Checked): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (found.baselines?.rules.length) parts.push(make("h3", {}, "Without learning"), baselineTable(found.baselines), make("p", { class: "hint" }, measuredOn(found.baselines)));
  if (found.ceiling !== null && found.ceiling < 1) parts.push(make("p", {}, `The best exact match there can be on the training examples is ${percent(found.ceiling)}: some sources have several targets.`));
  parts.push(make("h3", {}, "Findings"));
  parts.push(...(found.findings.length ? found.findings.map(findingCard) : [make("p", {}, "Nothing that stands out.")]));
  return parts;
}

function baselineTable({ rules }: Baselines): HTMLElement {
  const names = rules[0]!.scores.map(([name]) => name);
  const cells = (scores: readonly (readonly [string, number])[]): HTMLElement[] => scores.map(([, value]) => make("td", {}, value.toFixed(1)));
  return make("table", { class: "shares", "data-picture": "baselines" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, ""), ...names.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rules.map(({ name, scores }) => make("tr", { "data-rule": name }, make("th", { scope: "row" }, name), ...cells(scores)))));
}

function measuredOn({ held, of, known, searched }: Baselines): string {
  const some = held === of ? counted(held) : `${counted(held)} of ${counted(of)}`;
  return `On ${some} held-out examples${searched > 0 && searched < known ? `; neighbours among ${counted(searched)} of ${counted(known)} training examples` : ""}.`;
}

function findingCard(finding: Finding): HTMLElement {
  const lines = finding.lines.map(counted).join(", ") + (finding.count > finding.lines.length ? " …" : "");
  return make("div", { class: "finding", "data-finding": finding.kind, "data-level": finding.level },
    make("p", {}, make("span", { class: "severity" }, finding.level), make("strong", {}, finding.kind), `: ${counted(finding.count)} of ${counted(finding.of)} ${finding.said}`),
    make("p", { class: "hint", dir: "auto" }, `line${finding.lines.length > 1 ? "s" : ""} ${lines}: ${finding.example}`),
    make("p", { class: "cure" }, `Cure: ${finding.cure}.`));
}

function percent(share: number): string {
  return `${Math.min(99.9, 100 * share).toFixed(1)} %`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function shortened(text: string): string {
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}
