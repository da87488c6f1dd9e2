// Package work holds the pages of background jobs, of the queues' dashboard and of events that
// handlers could not process.
package work
