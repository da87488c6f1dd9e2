// Package delivery holds the pages of channels, of batches of messages and of
// dead letters.
package delivery
