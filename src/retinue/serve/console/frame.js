// The frame of the page: drawers at the sides, and the two dialogs.

const $ = (id) => document.getElementById(id);

/** The sides as drawers, where the page is too narrow to show them: {open(id), close()}. */
export function drawers() {
  const buttons = { conversations: $("show-conversations"), inspector: $("show-turn") };
  const close = () => {
    const id = document.body.dataset.drawer;
    if (!id) return false;
    delete document.body.dataset.drawer;
    $("shade").hidden = true;
    buttons[id].setAttribute("aria-expanded", "false");
    if ($(id).contains(document.activeElement)) buttons[id].focus();
    return true;
  };
  const open = (id) => {
    close();
    if (getComputedStyle(buttons[id]).display === "none") return; // the side is in sight
    document.body.dataset.drawer = id;
    $("shade").hidden = false;
    buttons[id].setAttribute("aria-expanded", "true");
    $(id).querySelector("button, a, [tabindex]")?.focus();
  };
  for (const [id, button] of Object.entries(buttons)) {
    button.addEventListener("click", () =>
      document.body.dataset.drawer === id ? close() : open(id),
    );
  }
  $("shade").addEventListener("click", close);
  return { open, close };
}

/** Asks for a key, and is done when one was given.
 *
 * @param {string} complaint what was wrong with the last one
 * @param {function(string)} keep
 */
export function signIn(complaint, keep) {
  const dialog = $("sign-in");
  $("sign-in-complaint").textContent = complaint;
  if (!dialog.open) dialog.showModal();
  $("key").focus();
  return new Promise((resolve) => {
    dialog.oncancel = (event) => event.preventDefault();
    $("sign-in-form").onsubmit = (event) => {
      event.preventDefault();
      keep($("key").value.trim());
      $("key").value = "";
      dialog.close();
      resolve();
    };
  });
}

/** Asks whether something is meant. */
export function confirmed(title, words, yes) {
  const dialog = $("confirm");
  $("confirm-head").textContent = title;
  $("confirm-words").textContent = words;
  $("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
  });
}
