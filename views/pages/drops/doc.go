// Package drops holds the pages of drops: the overview, templates and their
// form, the cockpit, the forecast, the accounting, corrections and shops.
package drops
