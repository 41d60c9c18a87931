// What is drawn in, one SVG or PNG file out: text stays text, boxes become rectangles, a canvas becomes an image.

const SVG = "http://www.w3.org/2000/svg";
const PAINT = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "visibility"];
const MARGIN = 16;

function node(name: string, attributes: { [name: string]: string | number }): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  return made;
}

const clear = (colour: string): boolean => colour === "transparent" || /rgba\(.*, 0\)|\/ 0\)/.test(colour);

/** A picture of an element as it stands on the page now, as large as what is drawn in it; controls are left out. */
export function pictureOf(element: HTMLElement): SVGSVGElement {
  const { left, top } = element.getBoundingClientRect();
  const drawn = node("g", {}) as SVGGElement;
  inside(element, getComputedStyle(element), drawn, { x: left, y: top });
  const edge = extent(drawn);
  const picture = node("svg", { xmlns: SVG, width: edge.width, height: edge.height, viewBox: `${edge.x} ${edge.y} ${edge.width} ${edge.height}` }) as SVGSVGElement;
  picture.append(node("rect", { ...edge, fill: getComputedStyle(document.body).backgroundColor }), drawn);
  return picture;
}

type Edge = { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

/** What is drawn and a margin; only what is on the page can be measured. */
function extent(drawn: SVGGElement): Edge {
  const trial = node("svg", { class: "measured" });
  trial.append(drawn);
  document.body.append(trial);
  const { x, y, width, height } = drawn.getBBox();
  trial.remove();
  return { x: Math.floor(x) - MARGIN, y: Math.floor(y) - MARGIN, width: Math.ceil(width) + 2 * MARGIN, height: Math.ceil(height) + 2 * MARGIN };
}

type Origin = { readonly x: number; readonly y: number };

function copy(element: Element, outer: SVGElement, origin: Origin): void {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden" || element.matches(".unsaved, [hidden]")) return;
  const into = style.opacity === "1" ? outer : outer.appendChild(node("g", { opacity: style.opacity }));
  if (element instanceof SVGSVGElement) return copyDrawing(element, into, origin);
  if (element instanceof HTMLCanvasElement || element instanceof HTMLImageElement) return copyImage(element, into, origin);
  for (const rect of element.getClientRects()) if (rect.width * rect.height > 0) box(rect, style, into, origin);
  inside(element, style, into, origin);
}

function inside(element: Element, style: CSSStyleDeclaration, into: SVGElement, origin: Origin): void {
  for (const child of element.childNodes) {
    if (child instanceof Element) copy(child, into, origin);
    else if (child instanceof Text && child.data.trim()) words(child, style, into, origin);
  }
}

/** Ground, border and outline, where there is one to see; a border that is not all around is drawn side by side. */
function box(rect: DOMRect, style: CSSStyleDeclaration, into: SVGElement, origin: Origin): void {
  const round = Math.min(Number.parseFloat(style.borderTopLeftRadius) || 0, rect.height / 2);
  const around = (by: number, paint: { [name: string]: string | number }): SVGElement =>
    node("rect", { x: rect.left - origin.x - by, y: rect.top - origin.y - by, width: rect.width + 2 * by, height: rect.height + 2 * by, rx: round, ...paint });
  const sides = [style.borderTopWidth, style.borderRightWidth, style.borderBottomWidth, style.borderLeftWidth].map(Number.parseFloat) as [number, number, number, number];
  const whole = sides.every((width) => width > 0) && !clear(style.borderTopColor);
  if (!clear(style.backgroundColor)) into.append(around(0, { fill: style.backgroundColor }));
  if (whole) into.append(around(-sides[0] / 2, { fill: "none", stroke: style.borderTopColor, "stroke-width": sides[0] }));
  else edges(rect, sides, style, into, origin);
  const outline = style.outlineStyle === "none" ? 0 : Number.parseFloat(style.outlineWidth);
  if (outline) into.append(around(Number.parseFloat(style.outlineOffset) + outline / 2, { fill: "none", stroke: style.outlineColor, "stroke-width": outline }));
}

function edges(rect: DOMRect, [top, , bottom, left]: readonly number[], style: CSSStyleDeclaration, into: SVGElement, origin: Origin): void {
  const [x, y] = [rect.left - origin.x, rect.top - origin.y];
  const draw = (width: number | undefined, colour: string, x1: number, y1: number, x2: number, y2: number): void => {
    if (width && !clear(colour)) into.append(node("line", { x1, y1, x2, y2, stroke: colour, "stroke-width": width }));
  };
  draw(top, style.borderTopColor, x, y, x + rect.width, y);
  draw(bottom, style.borderBottomColor, x, y + rect.height, x + rect.width, y + rect.height);
  draw(left, style.borderLeftColor, x, y, x, y + rect.height);
}

/** One text element for each piece of a text node that stands on one line. */
function words(text: Text, style: CSSStyleDeclaration, into: SVGElement, origin: Origin): void {
  const range = document.createRange();
  const size = Number.parseFloat(style.fontSize);
  const edge = style.textOverflow === "ellipsis" && text.parentElement ? text.parentElement.getBoundingClientRect().right + 1 : Infinity;
  for (const { start, end: whole } of onOneLine(text, range)) {
    const end = upTo(text, range, start, whole, edge);
    const rect = range.getBoundingClientRect();
    if (rect.width === 0) continue;
    const rtl = style.direction === "rtl";
    const made = node("text", {
      x: (rtl ? rect.right : rect.left) - origin.x, y: rect.top + rect.height / 2 + size * 0.35 - origin.y,
      "font-family": style.fontFamily, "font-size": size, "font-weight": style.fontWeight, fill: style.color, direction: style.direction,
      textLength: rect.width, lengthAdjust: "spacingAndGlyphs",
    });
    made.setAttribute("xml:space", "preserve"); // a token may begin with a space
    made.textContent = text.data.slice(start, end);
    into.append(made);
    if (end < whole) into.append(dots(made, rect, origin));
  }
}

/** Sets the range from `start` to what still stands before the edge, where the page cuts off the rest; gives its end. */
function upTo(text: Text, range: Range, start: number, whole: number, edge: number): number {
  range.setStart(text, start);
  range.setEnd(text, whole);
  let end = whole;
  const cut = range.getBoundingClientRect().right > edge;
  while (cut && end > start + 1 && range.getBoundingClientRect().right > edge - 14) range.setEnd(text, --end);
  return end;
}

function dots(words: SVGElement, rect: DOMRect, origin: Origin): SVGElement {
  const made = words.cloneNode() as SVGElement;
  made.removeAttribute("textLength");
  made.setAttribute("x", String(rect.right - origin.x));
  made.textContent = "…";
  return made;
}

function onOneLine(text: Text, range: Range): { start: number; end: number }[] {
  const pieces: { start: number; end: number; top: number }[] = [];
  for (let i = 0; i < text.length; i++) {
    range.setStart(text, i);
    range.setEnd(text, i + 1);
    const rect = range.getClientRects()[0];
    if (!rect || rect.width === 0) continue;
    const last = pieces.at(-1);
    if (last && Math.abs(last.top - rect.top) < 3) last.end = i + 1;
    else pieces.push({ start: i, end: i + 1, top: rect.top });
  }
  return pieces;
}

function copyDrawing(drawing: SVGSVGElement, into: SVGElement, origin: Origin): void {
  const rect = drawing.getBoundingClientRect();
  const group = node("svg", { x: rect.left - origin.x, y: rect.top - origin.y, width: rect.width, height: rect.height, overflow: "visible" });
  const viewBox = drawing.getAttribute("viewBox");
  if (viewBox) group.setAttribute("viewBox", viewBox);
  for (const child of drawing.children) group.append(painted(child));
  into.append(group);
}

/** A copy that holds its paint itself, since the style of the page stays behind. */
function painted(element: Element): Element {
  const twin = element.cloneNode(false) as Element;
  for (const { name } of Array.from(twin.attributes)) if (/^(class|data-|aria-|tabindex|role|id)/.test(name)) twin.removeAttribute(name);
  const style = getComputedStyle(element);
  if (element.tagName !== "g") for (const name of PAINT) twin.setAttribute(name, style.getPropertyValue(name));
  for (const child of element.childNodes) twin.append(child instanceof Element ? painted(child) : child.cloneNode());
  return twin;
}

function copyImage(image: HTMLCanvasElement | HTMLImageElement, into: SVGElement, origin: Origin): void {
  const rect = image.getBoundingClientRect();
  const href = image instanceof HTMLImageElement ? image.src : image.toDataURL("image/png");
  if (!href.startsWith("data:") || rect.width === 0) return;
  const made = node("image", { x: rect.left - origin.x, y: rect.top - origin.y, width: rect.width, height: rect.height, href, preserveAspectRatio: "none" });
  made.setAttribute("image-rendering", getComputedStyle(image).imageRendering);
  into.append(made);
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 5000);
}

export function saveSvg(element: HTMLElement, name: string): void {
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(pictureOf(element))}\n`;
  download(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Twice the size of the screen, so that it prints well. */
export async function savePng(element: HTMLElement, name: string): Promise<void> {
  const picture = pictureOf(element);
  const [width, height] = [Number(picture.getAttribute("width")), Number(picture.getAttribute("height"))];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(picture))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d")!.drawImage(image, 0, 0, 2 * width, 2 * height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) download(blob, `${name}.png`);
}
