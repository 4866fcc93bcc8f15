// JSON in which whole numbers stay what they are. JavaScript alone would round 12345678901234567890,
// and a person who edits the arguments of a call would approve another order than they saw.

const LONG = /\d{16}/; // all shorter ones are exact
const WHOLE = /^-?\d+$/;

/** What a JSON text says. A whole number that JavaScript would change is kept as it is written, and is
 * written so again, where the browser can do that. */
export function parse(text) {
  return LONG.test(text) && JSON.rawJSON ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_, value, { source }) {
  const isChanged = Number.isFinite(value) && !Number.isSafeInteger(value) && WHOLE.test(source);
  return isChanged ? JSON.rawJSON(source) : value;
}
