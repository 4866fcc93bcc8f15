// Server-sent events: text in, frames out, with no connection. The browser's own EventSource cannot
// send a key along, so the page reads streams by `fetch`.

/** Cuts a stream of text into frames, however it was cut on its way. */
export class Frames {
  constructor() {
    this._rest = "";
    this._frame = {};
  }

  /** The frames that this piece completes: [{id, event, data}]. */
  feed(piece) {
    const lines = (this._rest + piece).split("\n");
    this._rest = lines.pop();
    const found = [];
    for (const line of lines) {
      const text = line.endsWith("\r") ? line.slice(0, -1) : line;
      if (text === "") {
        if (this._frame.data !== undefined) found.push(this._frame);
        this._frame = {};
      } else this._field(text);
    }
    return found;
  }

  _field(line) {
    const at = line.indexOf(":");
    if (at === 0) return; // a comment, by which the server says that it is there
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    const before = this._frame[name];
    this._frame[name] = name === "data" && before !== undefined ? `${before}\n${value}` : value;
  }
}
