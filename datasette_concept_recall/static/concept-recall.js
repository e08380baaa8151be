// Search as you type on the Recall page: a while after the last key the page is asked for what
// the form says, and the part behind the form is exchanged. Without this script it is the same
// page, so there is nothing here that makes results of its own.

const PAUSE = 250; // ms after the last key before anything is asked for
const QUIET = 750; // ms after the answer before it is announced and kept in the history

const form = document.getElementById("recall-form");
const text = document.getElementById("recall-text");
const announcement = document.getElementById("recall-status");
const results = () => document.getElementById("recall-results");

let waiting = null; // the AbortController of the answer that is waited for
let timer = 0; // of the next step: to ask, or to announce what was answered
let isNewEntry = true; // whether the next answer becomes a new entry of the history
let shown = fieldsOfResults(); // what the results on the page answer, null for something else

function fieldsOf(form) {
  const fields = new URLSearchParams(new FormData(form));
  if (!fields.get("q")) fields.delete("q");
  if (fields.get("mode") === "auto") fields.delete("mode");
  return String(fields);
}

function fieldsOfResults() {
  if (new URLSearchParams(location.search).has("_next")) return null;
  const sent = form.cloneNode(true); // a browser may have put an unsent text back into the form
  sent.reset();
  return fieldsOf(sent);
}

const link = (fields) => (fields ? `${form.action}?${fields}` : form.action);
const isShort = (fields) => link(fields).length <= Number(form.dataset.longestLink);

async function load(fields, signal) {
  const response = isShort(fields)
    ? await fetch(link(fields), { signal })
    : await fetch(form.action, { method: "POST", body: new URLSearchParams(fields), signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!page.getElementById("recall-results")) throw new Error(`status ${response.status}`);
  return page;
}

// Shows the results of these fields. Gives the page they came with, or null when something else
// was asked for meanwhile or there is no answer.
async function show(fields) {
  stop();
  const controller = (waiting = new AbortController());
  results().setAttribute("aria-busy", "true");
  let page = null;
  let fresh;
  try {
    page = await load(fields, controller.signal);
    fresh = page.getElementById("recall-results");
  } catch (error) {
    fresh = failure(`The results could not be loaded (${error.message}).`);
  }
  if (controller !== waiting) return null;
  waiting = null;
  exchange(fresh);
  shown = page && fields;
  if (page) document.title = page.title;
  return page;
}

function failure(message) {
  const fresh = results().cloneNode(false);
  const paragraph = document.createElement("p");
  paragraph.className = "message-error";
  paragraph.setAttribute("role", "alert");
  paragraph.textContent = message;
  fresh.append(paragraph);
  fresh.removeAttribute("aria-busy");
  return fresh;
}

function exchange(fresh) {
  const hadFocus = results().contains(document.activeElement);
  results().replaceWith(fresh);
  if (hadFocus) {
    fresh.tabIndex = -1;
    fresh.focus();
  }
}

// Forgets what was to come, and what was announced, so that the same can be said again.
function stop() {
  clearTimeout(timer);
  waiting?.abort();
  waiting = null;
  results().removeAttribute("aria-busy");
  announcement.textContent = "";
}

// One entry of the history for every text that somebody stopped at, not for every key.
function remember(fields) {
  const address = isShort(fields) ? link(fields) : form.action;
  history[isNewEntry ? "pushState" : "replaceState"]({ fields }, "", address);
  isNewEntry = false;
}

function settle() {
  announcement.textContent = results().dataset.summary ?? "";
  isNewEntry = true;
}

async function follow(quiet = QUIET) {
  const fields = fieldsOf(form);
  const isNews = fields !== shown;
  if (!(await show(fields))) return;
  if (isNews) remember(fields);
  timer = setTimeout(settle, quiet);
}

function followSoon() {
  stop();
  const pause = PAUSE + Math.floor(text.value.length / 1000);
  timer = setTimeout(() => {
    if (fieldsOf(form) !== shown) follow();
    else timer = setTimeout(settle, QUIET);
  }, pause);
}

// Shows an entry of the history again, with its form.
async function restore(fields) {
  isNewEntry = true;
  const page = await show(fields);
  if (!page) return;
  text.value = page.getElementById("recall-text").value;
  form.querySelector(".recall-kept")?.remove();
  form.querySelector(".recall-submit").after(...page.querySelectorAll(".recall-kept"));
  settle();
}

form.addEventListener("input", (event) => {
  if (!event.isComposing) followSoon();
});
form.addEventListener("compositionstart", stop);
form.addEventListener("compositionend", followSoon);
form.addEventListener("submit", (event) => {
  if (event.submitter?.name) return; // a button among the results, which sends more than the form
  event.preventDefault();
  follow(0);
});
addEventListener("popstate", (event) => {
  restore(event.state?.fields ?? String(new URLSearchParams(location.search)));
});
addEventListener("pagehide", stop);
addEventListener("pageshow", () => {
  const fields = history.state?.fields;
  if (fields && !isShort(fields) && fields !== shown) {
    restore(fields); // its text is not in the address, so the page came without it
  } else if (shown !== null && fieldsOf(form) !== shown) {
    followSoon();
  }
});
