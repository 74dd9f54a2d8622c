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

// In two digits, for bars.
const brief = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 2 });
export const shareBriefly = (value) => brief.format(value);

// Short, for axes: 1,200 stays, 1,200,000 becomes 1.2M; in full where ticks would else read alike.
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumSignificantDigits: 15 });
export const full = (value) => whole.format(value);
function shortly(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size && size < 1e-4)) return value.toExponential();
  return size >= 1e5 ? compact.format(value) : fine.format(value);
}
export function tick(value, _, ticks = []) {
  const texts = ticks.map(shortly);
  return new Set(texts).size < texts.length ? full(value) : shortly(value);
}
