// Sphinx's scores of search results, and an order of the pages that have a word in their text: the guide, other pages for
// users, the reference; then what was measured, and the project.
const ORDER = {guide: 3, reference: -1, report: -20, contributing: -20, security: -20, changelog: -20};

var Scorer = {
    objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
    title: 15, partialTitle: 7, term: 5, partialTerm: 2,
    score: ([page, title, anchor, description, score]) => score + (ORDER[page] ?? 0),
};
