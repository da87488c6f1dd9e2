// Package docs holds the documents that web serves as they are.
package docs

import "embed"

// Files are the protocol of draws, its test vectors and a verifier.
//
//go:embed fair.md fair/draw.json fair/fetch.mjs fair/package.json fair/receipt.txt fair/verify.mjs
var Files embed.FS
