// Package messages holds the pages on which staff write the texts of messages: of
// a drop, and of a shop for all its drops.
package messages
