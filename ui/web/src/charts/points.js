// What scatter and parallel share: runs with values over dimensions.
import { NONE, number } from "../format.js";
import { extent } from "./common.js";

// Positive numbers that span this much, such as learning rates, get a logarithmic axis.
const DECADES = 100;

export const groupsOf = (points) => [...new Set(points.map((point) => point.group).filter(Boolean))];
export const isKnown = (value) => value !== null && value !== undefined && value !== "";

// A dimension is numeric when every value that is known is a number; else its values are names, in their order.
export function scaleOf(points, dimension) {
  const known = points.map((point) => point.values[dimension]).filter(isKnown);
  const numeric = known.length > 0 && known.every((value) => typeof value === "number");
  const values = numeric ? known : [...new Set(known.map(String))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const [low, high] = extent(numeric ? values : []);
  return { dimension, numeric, values, log: numeric && low > 0 && high / low >= DECADES };
}

export const told = (point, dimensions) =>
  [
    point.group ? `${point.label} (${point.group})` : point.label,
    ...dimensions.map((dimension) => `${dimension}: ${number(point.values[dimension] ?? null)}`),
  ].join("\n");

export const table = ({ points, dimensions }) => ({
  columns: ["Run", ...(groupsOf(points).length ? ["Group"] : []), ...dimensions],
  rows: () =>
    points.map((point) => [
      [point.label, point.href],
      ...(groupsOf(points).length ? [point.group || NONE] : []),
      ...dimensions.map((dimension) => point.values[dimension]),
    ]),
});
