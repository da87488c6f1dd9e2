// Package audience holds the pages of users, segments, lists and imports, and the pages on which a
// user opts out without signing in.
package audience
