// Package nodes tests several web and worker processes side by side on one
// database and one Redis, as they run in production.
package nodes
