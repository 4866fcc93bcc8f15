// What this tab remembers until it is closed, also when the page is loaded again. Where the browser keeps
// no more, or forbids it, the page itself remembers.

const PREFIX = "retinue.";
const here = new Map();

/** The text that is kept under a name, or null. */
export function recall(name) {
  try {
    return here.get(name) ?? sessionStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Keeps a text under a name. */
export function keep(name, text) {
  try {
    sessionStorage.removeItem(PREFIX + name); // or it would be back when there is no place for this
    sessionStorage.setItem(PREFIX + name, text);
    here.delete(name);
  } catch {
    here.set(name, text);
  }
}

/** Forgets everything. */
export function forget() {
  here.clear();
  try {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
    }
  } catch {
    // then nothing is there
  }
}
