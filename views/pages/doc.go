// Package pages holds the console's pages that have no package of their own.
package pages
