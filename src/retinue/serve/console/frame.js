// The frame of the page: drawers at the sides, and the two dialogs.

const $ = (id) => document.getElementById(id);
const HEADER = /^[!-~]+$/; // what can be sent along

/** The sides as drawers, where the page is too narrow to show them: {open(id), close()}. */
export function drawers() {
  const buttons = { conversations: $("show-conversations"), inspector: $("show-turn") };
  const behind = document.querySelectorAll(".top, main, .skip");
  const close = () => {
    const id = document.body.dataset.drawer;
    if (!id) return false;
    delete document.body.dataset.drawer;
    $("shade").hidden = true;
    for (const each of behind) each.inert = false;
    buttons[id].setAttribute("aria-expanded", "false");
    if ($(id).contains(document.activeElement)) buttons[id].focus();
    return true;
  };
  const open = (id) => {
    close();
    if (getComputedStyle(buttons[id]).display === "none") return; // the side is in sight
    document.body.dataset.drawer = id;
    $("shade").hidden = false;
    for (const each of behind) each.inert = true;
    buttons[id].setAttribute("aria-expanded", "true");
    $(id).focus();
  };
  for (const [id, button] of Object.entries(buttons)) {
    button.addEventListener("click", () =>
      document.body.dataset.drawer === id ? close() : open(id),
    );
  }
  $("shade").addEventListener("click", close);
  // A page that has grown wider shows the side in its place.
  window.addEventListener("resize", () => {
    const id = document.body.dataset.drawer;
    if (id && getComputedStyle(buttons[id]).display === "none") close();
  });
  return { open, close };
}

let signingIn = null;

/** Asks for a key, and gives it. All who ask at once are given the same.
 *
 * @param {string} complaint what was wrong with the last one
 */
export function signIn(complaint) {
  signingIn ??= givenKey(complaint).finally(() => (signingIn = null));
  return signingIn;
}

function givenKey(complaint) {
  const [dialog, box, said] = [$("sign-in"), $("key"), $("sign-in-complaint")];
  said.textContent = complaint;
  dialog.showModal();
  box.focus();
  return new Promise((resolve) => {
    // A second Escape would close it all the same.
    dialog.onkeydown = (event) => {
      if (event.key === "Escape") event.preventDefault();
    };
    dialog.oncancel = (event) => event.preventDefault();
    $("sign-in-form").onsubmit = (event) => {
      event.preventDefault();
      const key = box.value.trim();
      if (!HEADER.test(key)) {
        said.textContent = "That is neither a key nor a token: it has spaces or other signs in it.";
        return;
      }
      box.value = "";
      dialog.close();
      resolve(key);
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
