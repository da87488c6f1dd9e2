// Package access holds the pages of signing in, second factors, staff, API keys
// and the audit log.
package access
