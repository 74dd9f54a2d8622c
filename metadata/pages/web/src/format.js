const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 3 });

export const NONE = "-";
export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function number(value) {
  if (!isNumber(value)) return value == null ? NONE : String(value);
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e12)) return value.toExponential(3);
  return (size >= 1e5 ? plain : fine).format(value);
}

export const share = (value) => (isNumber(value) ? percent.format(value) : NONE);
export const count = (value) => (Number.isInteger(value) ? plain.format(value) : number(value));
export const rows = (value) => `${plain.format(value)} ${value === 1 ? "row" : "rows"}`;

// Short, for axes: 1,200 stays, 1,200,000 becomes 1.2M.
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
export function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e12 || (size && size < 1e-4)) return value.toExponential();
  return size >= 1e5 ? compact.format(value) : fine.format(value);
}
