import { Graph, layout } from "@dagrejs/dagre";
import { h, s, textWidth, truncate, uniqueId } from "../dom.js";

const WIDE = 640;
const LABEL = 13;
const DETAIL = 11;
const PADDING = 12;
const ICON = 18;
const [NARROWEST, WIDEST] = [84, 210];
const HEIGHT = { node: 46, artifact: 46 };
// A little too wide is made smaller; more than that scrolls.
const SMALLEST_SCALE = 0.8;
const TALLEST = 900;
const ICONS = { done: "✓", cached: "↻", failed: "✕", running: "▶", waiting: "○", stopped: "■", killed: "■" };

const second = (node) => [node.state, node.detail].filter(Boolean).join(" · ");

function sized(node) {
  const icon = node.state ? ICON : 0;
  const text = Math.max(textWidth(node.label, LABEL, 600) + icon, textWidth(second(node), DETAIL));
  const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, text + 2 * PADDING)));
  return { ...node, width, height: second(node) ? HEIGHT[node.shape] ?? HEIGHT.node : 32 };
}

function placed(data, direction) {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: direction, nodesep: 14, edgesep: 6, ranksep: direction === "LR" ? 44 : 34, marginx: 6, marginy: 6 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of data.nodes) graph.setNode(node.id, sized(node));
  for (const [from, to] of data.edges) {
    if (from !== to && graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to);
  }
  layout(graph);
  return graph;
}

// Through the middles of the bends, so that lines turn softly.
function path(points) {
  const [first, ...rest] = points;
  const last = rest.pop();
  let d = `M${first.x},${first.y}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1] ?? last;
    const end = index === rest.length - 1 ? last : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    d += `Q${point.x},${point.y} ${end.x},${end.y}`;
  });
  return rest.length ? d : `${d}L${last.x},${last.y}`;
}

function drawNode(node) {
  const [left, top] = [node.x - node.width / 2, node.y - node.height / 2];
  const room = node.width - 2 * PADDING + 4;
  const detail = second(node);
  const icon = node.state ? ICON : 0;
  const line = detail ? 19 : 21;
  const full = [node.label, node.state, node.detail].filter(Boolean).join(", ");
  const parts = [
    s("title", {}, full),
    s("rect", { x: left, y: top, width: node.width, height: node.height, rx: node.shape === "artifact" ? node.height / 2 : 5 }),
    icon && s("text", { class: "icon", x: left + PADDING, y: top + line, "aria-hidden": "true" }, ICONS[node.state] ?? "•"),
    s("text", { class: "label", x: left + PADDING + icon, y: top + line }, truncate(node.label, room - icon, LABEL, 600)),
    detail && s("text", { class: "detail", x: left + PADDING, y: top + line + 16 }, truncate(detail, room, DETAIL)),
  ].filter(Boolean);
  const attributes = { class: ["node", node.shape, node.state && `is-${node.state.replaceAll(" ", "-")}`, node.current && "current"].filter(Boolean).join(" ") };
  const name = { "aria-label": full, "aria-current": node.current && "true" };
  const inner = node.href ? [s("a", { href: node.href, ...name }, ...parts)] : parts;
  return s("g", { role: "listitem", ...attributes, ...(node.href ? {} : name) }, ...inner);
}

// To the right where there is room; down where the page is narrow, or where only that way fits without scrolling.
function fitted(data, width) {
  const [right, down] = (width >= WIDE ? ["LR", "TB"] : ["TB"]).map((direction) => {
    const laid = placed(data, direction);
    const { width: natural, height } = laid.graph();
    const scale = natural > width && width / natural >= SMALLEST_SCALE ? width / natural : 1;
    return { laid, natural, height, scale, fits: natural * scale <= width && height <= TALLEST };
  });
  return !right.fits && down?.fits ? down : right;
}

export function graph(data) {
  const draw = (width) => {
    const { laid, natural, height, scale } = fitted(data, width);
    const arrow = uniqueId("arrow");
    const edges = laid.edges().map((edge) => s("path", { d: path(laid.edge(edge).points), "marker-end": `url(#${arrow})` }));
    const head = { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
    const svg = s(
      "svg",
      { class: "graph", viewBox: `0 0 ${natural} ${height}`, width: natural * scale, height: height * scale, role: "group", "aria-label": data.title },
      s("defs", {}, s("marker", head, s("path", { d: "M0,0L8,4L0,8Z", class: "arrow" }))),
      s("g", { class: "edges", "aria-hidden": "true" }, ...edges),
      s("g", { role: "list", "aria-label": `${data.nodes.length} nodes` }, ...data.nodes.map((node) => drawNode(laid.node(node.id)))),
    );
    if (natural * scale <= width && height <= TALLEST) return svg;
    const frame = h("div", { class: "scroll graph-frame", tabindex: 0, role: "region", "aria-label": `${data.title}, scrolls` }, svg);
    const { x, y } = laid.node((data.nodes.find((node) => node.current) ?? data.nodes[0]).id);
    requestAnimationFrame(() => frame.scrollTo(x - width / 2, y - frame.clientHeight / 2));
    return frame;
  };
  const from = (id) => data.edges.filter(([, to]) => to === id).map(([source]) => labels.get(source) ?? source);
  const labels = new Map(data.nodes.map((node) => [node.id, node.label]));
  const rows = () => data.nodes.map((node) => [[node.label, node.href], node.state, node.detail, from(node.id).join(", ")]);
  return { empty: !data.nodes.length && "Nothing to draw.", draw, columns: ["Name", "State", "Detail", "From"], rows };
}
