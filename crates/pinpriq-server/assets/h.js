// Makes elements. Text from the server only ever becomes text nodes or attributes that cannot run:
// nothing here, or anywhere else in the dashboard, parses markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "polyline", "rect", "line", "circle", "title"]);

// Makes an element. Props whose names begin with `on` are listeners, `style` is an object of CSS
// properties, `class` may be an array with gaps; what is null, undefined or false is left out.
export function h(tag, props, ...children) {
  const isSvg = SVG_TAGS.has(tag) && tag !== "title";
  const node = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") {
      node.setAttribute("class", Array.isArray(value) ? value.filter(Boolean).join(" ") : value);
    } else if (name === "style") {
      for (const [key, it] of Object.entries(value)) node.style.setProperty(key, it);
    } else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(node, child);
    else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// Replaces what is in a node.
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

let last = 0;

// Returns an id that no other element has.
export function freshId(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}
