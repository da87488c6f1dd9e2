// Package campaigns holds the pages of campaigns: their form, approval,
// recipients, results and calendar.
package campaigns
