// What comes over the wire or lies in a saved file, as it is written there.

export interface WireToken {
  text: string;
  start: number;
  end: number;
  id: number;
}

/** Numbers as base64 of their bytes, little end first. */
export interface Packed {
  shape: number[];
  float32: string;
}

export interface WireMap {
  name: string;
  queries: Side;
  keys: Side;
  heads: number;
  weights: number[][][] | Packed;
}

/** What is written is the target as a decoder is fed it, one step late; a row is the source followed by that. */
export type Side = "source" | "target" | "written" | "row";

export interface Alternative {
  text: string;
  id: number;
  probability: number;
}

export interface BeamNode {
  parent: number;
  token: string;
  id: number;
  step: number;
  log: number;
  sum: number;
  ended: boolean;
  kept: boolean;
  best: boolean;
}

export interface PerHead {
  name: string;
  heads: number[];
}

export interface WireDerived {
  erasure: number[][] | Packed;
  gradient: number[][] | Packed;
  rollout: number[][] | Packed | null;
  entropy: PerHead[];
  importance: PerHead[];
  agreement: { erasure?: number | null; gradient?: number | null } | null;
}

export interface Change {
  erase: number[];
  off: [string, number][];
  /** Ids of tokens; or what they spell, for a model that has other tokens. */
  begin: number[] | string;
}

export interface ModelName {
  name: string;
  task: string;
  preset: string;
  parameters: number;
}

export interface Picture {
  data: string;
  width: number;
  height: number;
  rows: number;
  columns: number;
}

export interface Answer {
  text: string;
  score: number;
  confidence: number;
}

export interface WireRecord {
  kind: "record";
  model: ModelName;
  /** An encoder and a decoder, one row, or a model that only reads. */
  structure: "pair" | "row" | "read";
  text: string;
  picture: Picture | null;
  source: WireToken[];
  output: string;
  target: WireToken[];
  written: WireToken[];
  /** The place in the row from which the first target token is foreseen. */
  first: number;
  at: [number, number][] | null;
  probabilities: number[];
  /** How much of each target token was left to copying, of models that copy. */
  copied?: number[] | null;
  alternatives: Alternative[][];
  confidence: number;
  score: number;
  answers: Answer[];
  chances: [string, number][];
  maps: WireMap[];
  beam: BeamNode[] | null;
  seconds: { [part: string]: number };
  derived: WireDerived | null;
  change: Change | null;
  /** Of a vector: how far it moves without each word. */
  carried?: Weighed[];
}

/** A stretch of a text, in code points, and what it is worth. */
export interface Weighed {
  start: number;
  end: number;
  weight: number;
}

export interface ModelCard extends ModelName {
  reads: "text" | "picture";
  columns: number;
  /** What the columns are called, where the file that the model learnt from names them. */
  names?: string[];
  beam: number;
  loaded: boolean;
  examples: string[];
}

export interface Hit {
  number: number;
  text: string;
  cosine: number;
  words: Weighed[];
}

export interface Score {
  name: string;
  value: number;
  low: number | null;
  high: number | null;
  percent: boolean;
  signature?: string | null;
}

export interface Example {
  source: string;
  target: string;
  output: string;
  confidence: number;
  right: boolean;
}

export interface Exposure {
  forced: number;
  free: number;
  left: number;
  returned: number | null;
  by_position: { position: number; forced: number; free: number; count: number }[];
}

export interface Share {
  count: number;
  value: number;
  low: number;
  high: number;
}

export interface Cause {
  kind: string;
  said: string;
  inside: Share;
  rest: Share;
  explains: number;
  stands_out: boolean;
  examples: [string, string, string][];
  cure: string;
}

export interface Failures {
  unit: string;
  rule: string;
  judged: number;
  failed: number;
  causes: Cause[];
  left_out: string;
  said: string;
}

export interface Finding {
  kind: string;
  level: "trouble" | "doubt" | "remark";
  count: number;
  of: number;
  lines: number[];
  said: string;
  example: string;
  cure: string;
}

export interface Baselines {
  rules: { name: string; scores: [string, number][] }[];
  held: number;
  of: number;
  known: number;
  searched: number;
}

/** What the data doctor says of the training examples. */
export interface Checked {
  examples: number;
  ceiling: number | null;
  findings: Finding[];
  baselines: Baselines | null;
}

export interface Report {
  kind: "report";
  model: ModelName;
  made: string;
  scores: Score[];
  facts: [string, number | string][];
  curves: { metric: string; points: { [name: string]: number | null }[] } | null;
  examples: { best: Example[]; worst: Example[] };
  by_length: {
    metric: string;
    bins: { from: number; to: number; count: number; value: number; low: number | null; high: number | null }[];
  } | null;
  exposure: Exposure | null;
  confusion: { labels: string[]; counts: number[][] } | null;
  calibration: { from: number; to: number; count: number; sure: number; right: number }[] | null;
  data: [string, string | number][];
  /** Reports of earlier versions have neither. */
  failures?: Failures | null;
  check?: Checked | null;
  card: string;
  records: WireRecord[];
}

export interface Diagram {
  encoder: string;
  decoder: string;
  bidirectional: boolean;
  attention: string;
  layers: [number, number];
  heads: number;
  bottleneck: boolean;
}

export interface Curve {
  title: string;
  x: string;
  y: string;
  series: { name: string; points: [number, number][] }[];
  command: string;
}

export interface LessonPage {
  name: string;
  title: string;
  sentences: string[];
  /** What this page's model is asked; none = the example of the lesson. */
  example?: string;
  parameters?: number;
  scores?: { name: string; value: number; low?: number | null; high?: number | null }[];
  diagram: Diagram;
  record: WireRecord | null;
  curve: Curve | null;
}

export interface Lesson {
  kind: "lesson";
  example: string;
  command: string;
  pages: LessonPage[];
}
