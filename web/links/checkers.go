package links

import (
	"net/http"
	"strings"
)

// checkers are parts of the names of programs that load links of messages before or instead of the
// readers: previews of messengers, mail scanners, crawlers and libraries. They are in lower case.
var checkers = []string{"bot", "crawl", "spider", "preview", "prefetch", "scan", "facebookexternalhit", "whatsapp/", "googleimageproxy", "barracuda",
	"mimecast", "proofpoint", "symantec", "safelinks", "headless", "curl/", "wget/", "python", "go-http-client", "java/", "libwww", "axios/", "node-fetch"}

// checksLinks reports whether the request comes from such a program and not from a reader: by its
// method and headers, or by its User-Agent. Scanners that call themselves a browser are not
// recognised.
func checksLinks(r *http.Request) bool {
	if r.Method == http.MethodHead {
		return true
	}
	for _, name := range []string{"Purpose", "Sec-Purpose", "X-Purpose", "X-Moz"} {
		if v := strings.ToLower(r.Header.Get(name)); strings.Contains(v, "prefetch") || strings.Contains(v, "preview") || strings.Contains(v, "prerender") {
			return true
		}
	}
	agent := strings.ReplaceAll(strings.ToLower(r.UserAgent()), "cubot", "") // a maker of phones
	if agent == "" {
		return true
	}
	for _, part := range checkers {
		if strings.Contains(agent, part) {
			return true
		}
	}
	return false
}
