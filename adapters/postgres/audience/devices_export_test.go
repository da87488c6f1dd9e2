package audience

// HoldersSQL is the statement that finds the users who have a phone.
const HoldersSQL = holdersSQL

// BrowserHoldersSQL is the statement that finds the users who have a browser.
const BrowserHoldersSQL = browserHoldersSQL
