package asynq

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"

	"github.com/hibiken/asynqmon"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
)

// shownPayload is the largest part of a payload or a result that the dashboard shows, in bytes.
const shownPayload = 512

// A Monitor serves asynqmon, the library's dashboard, below one path. It checks
// no sessions: mount it behind sign-in, role and cross-origin checks.
type Monitor struct {
	readOnly, writable *dashboard
}

// NewMonitor returns the dashboard of the Redis at redisURL for the paths
// rootPath and everything below; rootPath starts with a slash. It does not
// connect yet.
func NewMonitor(redisURL, rootPath string) (*Monitor, error) {
	if !strings.HasPrefix(rootPath, "/") {
		return nil, fmt.Errorf("monitor path %q does not start with a slash", rootPath)
	}
	readOnly, err := newDashboard(redisURL, rootPath, true)
	if err != nil {
		return nil, err
	}
	writable, err := newDashboard(redisURL, rootPath, false)
	if err != nil {
		return nil, errors.Join(err, readOnly.Close())
	}
	return &Monitor{readOnly, writable}, nil
}

// Handler returns the dashboard; if writable is false it refuses every change with 405. Do not
// strip the path prefix.
func (m *Monitor) Handler(writable bool) http.Handler {
	if writable {
		return m.writable
	}
	return m.readOnly
}

// Close frees the connections.
func (m *Monitor) Close() error { return errors.Join(m.readOnly.Close(), m.writable.Close()) }

// A dashboard is one asynqmon whose page is changed to fit a strict content security policy:
// fonts of a foreign host are removed, inline scripts are allowed by their hashes.
type dashboard struct {
	*asynqmon.HTTPHandler
	page   []byte
	policy string
}

func newDashboard(redisURL, rootPath string, readOnly bool) (*dashboard, error) {
	client, err := redisclient.New(redisURL, 0)
	if err != nil {
		return nil, err
	}
	if err := client.Close(); err != nil {
		return nil, err
	}
	d := &dashboard{HTTPHandler: asynqmon.New(asynqmon.Options{
		RootPath: rootPath, RedisConnOpt: connector(redisURL), ReadOnly: readOnly,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(showPayload),
		ResultFormatter:  asynqmon.ResultFormatterFunc(showPayload),
	})}
	if err := d.preparePage(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// A connector opens the dashboard's clients at an address that was parsed before without an
// error.
type connector string

// MakeRedisClient implements the library's RedisConnOpt.
func (c connector) MakeRedisClient() any {
	client, err := redisclient.New(string(c), 0)
	if err != nil {
		return goredis.UniversalClient(nil)
	}
	return client
}

func showPayload(_ string, payload []byte) string {
	text := strings.ToValidUTF8(string(payload), "?")
	if len(text) > shownPayload {
		text = strings.ToValidUTF8(text[:shownPayload], "") + "…"
	}
	return text
}

func (d *dashboard) preparePage() error {
	request, err := http.NewRequest(http.MethodGet, d.RootPath()+"/", nil)
	if err != nil {
		return err
	}
	answer := newBuffer()
	d.HTTPHandler.ServeHTTP(answer, request)
	if answer.status != http.StatusOK || !answer.isPage() {
		return fmt.Errorf("dashboard page: status %d", answer.status)
	}
	foreignFont := regexp.MustCompile(`<link [^>]*href="https?://fonts\.googleapis\.com/[^>]*>`)
	d.page = foreignFont.ReplaceAll(answer.body.Bytes(), nil)
	d.policy = "default-src 'none'; script-src 'self'" + scriptHashes(d.page) +
		// The dashboard's component library writes style elements.
		"; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'" +
		"; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	return nil
}

func scriptHashes(page []byte) string {
	inline := regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	var sources strings.Builder
	for _, script := range inline.FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(script[1])
		sources.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	return sources.String()
}

func (d *dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", d.policy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	api := d.RootPath() + "/api/"
	switch {
	case strings.HasPrefix(r.URL.Path, api+"metrics"), path.Clean(r.URL.Path) == path.Join(api, "redis_info"), strings.HasSuffix(r.URL.Path, ".map"):
		// The first would query a Prometheus that is not configured. The second shows
		// the server's version, addresses, clients and memory, the third the sources of
		// the page's scripts; neither is about queues.
		http.NotFound(w, r)
	case strings.HasPrefix(r.URL.Path, api):
		w.Header().Set("Cache-Control", "no-store")
		d.serveData(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		d.serveFile(w, r)
	}
}

// serveData answers the page's requests. For a queue that does not exist the
// library answers with a server error.
func (d *dashboard) serveData(w http.ResponseWriter, r *http.Request) {
	answer := newBuffer()
	d.HTTPHandler.ServeHTTP(answer, r)
	if answer.status == http.StatusInternalServerError && unknownQueue.Match(answer.body.Bytes()) {
		http.Error(w, "there is no such queue", http.StatusNotFound)
		return
	}
	answer.writeTo(w)
}

// unknownQueue matches the library's errors for a queue that does not exist.
var unknownQueue = regexp.MustCompile(`(?i)queue "?[^"\n]*"? ?(does not exist|not found)`)

// serveFile answers with an asset, or with the prepared page for every other
// path, because the dashboard routes in the browser.
func (d *dashboard) serveFile(w http.ResponseWriter, r *http.Request) {
	answer := newBuffer()
	d.HTTPHandler.ServeHTTP(answer, r)
	if answer.isPage() {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(answer.status)
		_, _ = w.Write(d.page)
		return
	}
	answer.writeTo(w)
}

// A buffer keeps an answer in memory.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newBuffer() *buffer { return &buffer{header: http.Header{}, status: http.StatusOK} }

func (b *buffer) Header() http.Header         { return b.header }
func (b *buffer) WriteHeader(status int)      { b.status = status }
func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }

func (b *buffer) writeTo(w http.ResponseWriter) {
	for name, values := range b.header {
		w.Header()[name] = values
	}
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body.Bytes()) // the client may be gone
}

func (b *buffer) isPage() bool {
	return bytes.HasPrefix(b.body.Bytes(), []byte("<!doctype html>"))
}
