package program

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"dropbell/app"
)

// securityTextFor is how long /.well-known/security.txt is valid. The file is made anew for every
// request.
const securityTextFor = 90 * 24 * time.Hour

// securityText says where weaknesses are reported (RFC 9116).
func (p *program) securityText(w http.ResponseWriter, r *http.Request) {
	if p.Config.SecurityContact == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	expires := app.Clock().Add(securityTextFor).Truncate(24 * time.Hour)
	fmt.Fprintf(w, "Contact: %s\nExpires: %s\nPreferred-Languages: en, zh\nCanonical: %s/.well-known/security.txt\n",
		p.Config.SecurityContact, expires.Format(time.RFC3339), strings.TrimRight(p.Config.PublicURL, "/"))
}
