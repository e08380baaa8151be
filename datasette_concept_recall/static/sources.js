// The page of the sources follows what it shows: while something runs, or could begin to by itself,
// the page is asked for again and again, and what has changed in it is exchanged. Without this
// script there is its link "Refresh", and nothing here shows anything that the page would not.

// ms between an answer and the next question
const PAUSES = { busy: 2000, kept: 5000 };

const list = () => document.getElementById("recall-sources");

let timer = 0;

async function load() {
  const response = await fetch(location.pathname + location.search);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.getElementById("recall-sources");
}

// Somebody who presses a button, or marks what is to be copied, is not to lose it.
function isInUse() {
  const selection = getSelection();
  const isMarked = !selection.isCollapsed && list().contains(selection.anchorNode);
  return isMarked || list().querySelector("input:active, summary:active, a:active") !== null;
}

// Exchanges the parts that have changed, with what somebody unfolded and the focus kept.
function exchange(before, after) {
  for (const details of before.querySelectorAll("details[id][open]")) {
    after.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
  }
  if (before.isEqualNode(after)) return;
  const focused = before.contains(document.activeElement) ? idOf(document.activeElement) : null;
  before.replaceWith(after);
  if (focused) {
    const again = document.querySelector(focused);
    (again ?? keepable(after)).focus({ preventScroll: true });
  }
}

// A way to find an element in the next page: what is unfolded has its id on its parent.
function idOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const parent = element.parentElement?.id;
  return parent ? `#${CSS.escape(parent)} > ${element.localName}` : "#recall-sources";
}

function keepable(element) {
  element.tabIndex = -1;
  return element;
}

// One part for each source, as long as they are the same ones; else all of it.
function parts(root) {
  return [...root.querySelectorAll(".recall-source")];
}

function hasSameFrame(before, after) {
  const [one, other] = [before.cloneNode(true), after.cloneNode(true)];
  for (const part of [...parts(one), ...parts(other)]) part.replaceChildren();
  return one.isEqualNode(other);
}

// A token that is another one on every page is no change of what is shown.
function takeToken(fresh) {
  const tokens = (root) => [...root.querySelectorAll("input[name=csrftoken]")];
  const value = tokens(fresh)[0]?.value;
  for (const input of [...tokens(list()), ...tokens(fresh)]) input.setAttribute("value", value);
}

function show(fresh) {
  takeToken(fresh);
  if (!hasSameFrame(list(), fresh)) return exchange(list(), fresh);
  const after = parts(fresh);
  parts(list()).forEach((before, n) => exchange(before, after[n]));
}

async function follow() {
  if (document.hidden) return; // goes on when the page is looked at again
  try {
    const fresh = isInUse() ? null : await load();
    if (fresh && !isInUse()) show(fresh);
  } catch {
    // The server may be about to be started again: what was seen last stays, and is asked again.
  }
  followSoon();
}

function followSoon() {
  clearTimeout(timer);
  const state = Object.keys(PAUSES).find((each) => each in list().dataset);
  if (state && !document.hidden) timer = setTimeout(follow, PAUSES[state]);
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden) follow();
});
addEventListener("pagehide", () => clearTimeout(timer));
addEventListener("pageshow", followSoon);
