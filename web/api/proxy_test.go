package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
	"dropbell/musttest"
)

// numberHeader has the number of the test's request, for the server behind the proxy.
const numberHeader = "Test-Number"

// proxy is the validating proxy prism between tests and a server that forwards their requests to
// the right fixture. prism compares every request and every answer with the document, and lists the
// differences in a header. It does not refuse requests itself, because refused requests would not
// reach the server.
type proxy struct {
	url    string
	client *http.Client
	sent   sync.Map // of *forwarded by number
	last   atomic.Int64
	mu     sync.Mutex
	seen   map[exchange]bool
}

// exchange is an operation of the document with the status of an answer.
type exchange struct {
	operation string // GET /templates/{id}
	status    int
}

// theProxy is the proxy that the calls of tests below [TestEveryAnswerIsAsDocumented] pass.
var theProxy atomic.Pointer[proxy]

// startProxy returns a proxy that serves until the end of the test.
func startProxy(t *testing.T) *proxy {
	t.Helper()
	bin := filepath.Join(localstack.NPMPackages(t, "testdata/contract"), ".bin")
	c := newContract(t)
	p := &proxy{client: &http.Client{Transport: &http.Transport{DisableCompression: true}}, seen: map[exchange]bool{}}
	server := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(server.Close)
	port, err := localstack.FreePort(1)
	musttest.OK(t, err)
	log, err := os.Create(filepath.Join(c.dir, "prism.log"))
	musttest.OK(t, err)
	defer log.Close() // the child has its own
	p.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	cmd := exec.Command(filepath.Join(bin, "prism"), "proxy", "openapi.json", server.URL+"/api/v1",
		"--host", "127.0.0.1", "--port", strconv.Itoa(port), "--verboseLevel", "error")
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, log, log
	prism, err := child.Start(cmd, syscall.SIGKILL)
	musttest.OK(t, err)
	t.Cleanup(func() {
		prism.Signal(syscall.SIGKILL)
		<-prism.Done()
		prism.Forget()
	})
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			conn.Close()
			return p
		}
		select {
		case <-prism.Done():
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("prism ended: %v\n%s", prism.Err(), said)
		case <-t.Context().Done():
			t.Fatal("prism does not listen")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// through returns the proxy that the fixture's calls have to take; nil = none.
func (r *fixture) through() *proxy {
	if strings.HasPrefix(r.Name(), "TestEveryAnswerIsAsDocumented/") {
		return theProxy.Load()
	}
	return nil
}

// forwarded is a request that passes the proxy, and its answer as the server sent it: the proxy
// writes bodies in its own format.
type forwarded struct {
	to     http.Handler
	answer *httptest.ResponseRecorder
}

// serve is the server behind the proxy.
func (p *proxy) serve(w http.ResponseWriter, q *http.Request) {
	number := q.Header.Get(numberHeader)
	q.Header.Del(numberHeader)
	value, known := p.sent.Load(number)
	if !known {
		panic(http.ErrAbortHandler)
	}
	f := value.(*forwarded)
	f.to.ServeHTTP(f.answer, q)
	maps.Copy(w.Header(), f.answer.Header())
	w.WriteHeader(f.answer.Code)
	_, _ = w.Write(f.answer.Body.Bytes()) // the proxy may be gone
}

// send is ServeHTTP of the fixture by way of the proxy.
func (p *proxy) send(r *fixture, q *http.Request) *httptest.ResponseRecorder {
	r.Helper()
	f := &forwarded{r.Handler, httptest.NewRecorder()}
	body, broken := io.ReadAll(q.Body)
	q.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(cmp.Or(broken, io.EOF))))
	pattern := r.api.PatternOf(q.Method, strings.TrimPrefix(q.URL.Path, "/api/v1"))
	if pattern == "" || broken != nil || !canForward(q, body) {
		f.to.ServeHTTP(f.answer, q)
		if strings.HasPrefix(q.Header.Get("Content-Type"), "image/") { // the proxy would write the picture anew
			p.mu.Lock()
			defer p.mu.Unlock()
			p.seen[exchange{q.Method + " " + pattern, f.answer.Code}] = true
		}
		return f.answer
	}
	number := strconv.FormatInt(p.last.Add(1), 10)
	p.sent.Store(number, f)
	defer p.sent.Delete(number)
	out, err := http.NewRequestWithContext(q.Context(), q.Method, p.url+strings.TrimPrefix(q.URL.RequestURI(), "/api/v1"), bytes.NewReader(body))
	r.must(err)
	out.Header = q.Header.Clone()
	out.Header.Set(numberHeader, number)
	answer, err := p.client.Do(out)
	r.must(err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	r.must(err)
	if answer.StatusCode != f.answer.Code {
		r.Errorf("%s: %s %s: the proxy answers %d: %s", r.about, q.Method, q.URL, answer.StatusCode, said)
	}
	for _, found := range answer.Header.Values("sl-violations") {
		p.judge(r, q, f.answer.Code, found)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[exchange{q.Method + " " + pattern, f.answer.Code}] = true
	return f.answer
}

// canForward reports whether prism forwards the request unchanged: it parses headers, queries and
// bodies, and writes them anew. It has no operations for HEAD.
func canForward(q *http.Request, body []byte) bool {
	for _, values := range q.Header {
		if strings.ContainsFunc(strings.Join(values, ""), unicode.IsControl) {
			return false
		}
	}
	query, err := url.QueryUnescape(q.URL.RawQuery)
	if err != nil || !utf8.ValidString(query) || q.Method == http.MethodHead || !utf8.Valid(body) {
		return false
	}
	kind := q.Header.Get("Content-Type")
	if len(body) == 0 || !strings.HasPrefix(kind, "application/json") {
		return true
	}
	// Numbers become JavaScript numbers, and of equal names only one stays.
	d, v := json.NewDecoder(bytes.NewReader(body)), map[string]any(nil)
	d.UseNumber()
	if err := d.Decode(&v); err != nil || v == nil || !jsontext.Value(body).IsValid() || len(body) > 10<<20 {
		return false
	}
	precise := true
	for _, n := range numbers(v) {
		f, err := n.Float64()
		precise = precise && err == nil && strconv.FormatFloat(f, 'f', -1, 64) == n.String()
	}
	return precise
}

// numbers returns the numbers inside a value that was read from JSON.
func numbers(v any) (list []json.Number) {
	switch x := v.(type) {
	case json.Number:
		return []json.Number{x}
	case []any:
		for _, inner := range x {
			list = append(list, numbers(inner)...)
		}
	case map[string]any:
		for _, inner := range x {
			list = append(list, numbers(inner)...)
		}
	}
	return list
}

// refused are the statuses of requests that do not conform to the document, or that were refused
// unread.
var refused = []int{400, 401, 403, 413, 415, 422, 428, 429}

// judge fails the test if the proxy found an answer that is missing in the document, or a request
// that is missing in the document and was not refused.
func (p *proxy) judge(r *fixture, q *http.Request, status int, found string) {
	r.Helper()
	var violations []struct {
		Location []any
		Message  string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil { // too many of them for a header
		r.Errorf("%s: %s %s: %d: %s", r.about, q.Method, q.URL, status, found)
	}
	for _, v := range violations {
		if v.Location[0] == "request" && slices.Contains(refused, status) {
			continue
		}
		r.Errorf("%s: %s %s: %d: %v %s", r.about, q.Method, q.URL, status, v.Location, v.Message)
	}
}

// TestEveryAnswerIsAsDocumented runs the tests of the operations with a validating proxy between
// them and the server; no other test runs them. A single test: -run
// 'TestEveryAnswerIsAsDocumented/of/^Claim$'.
func TestEveryAnswerIsAsDocumented(t *testing.T) {
	t.Parallel()
	p := startProxy(t)
	theProxy.Store(p)
	t.Run("of", p.tests) // which waits for all of them
	p.complete(t)
}

func (p *proxy) tests(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Codes", testCodes}, {"CodeRefusals", testCodeRefusals}, {"AdminCoupons", testAdminCoupons}, {"Grants", testGrants},
		{"GrantIsAppliedAfterItsDryRun", testGrantIsAppliedAfterItsDryRun}, {"ChangeTemplate", testChangeTemplate},
		{"Transitions", testTransitions}, {"ListTemplates", testListTemplates}, {"BoardAndBalance", testBoardAndBalance}, {"Forecast", testForecast}, {"Flight", testFlight}, {"Rehearsals", testRehearsals}, {"Capacity", testCapacity}, {"Money", testMoney}, {"Budgets", testBudgets}, {"Doors", testDoors}, {"Draw", testDraw}, {"DrawFigures", testDrawFigures}, {"DrawWithDoorsPassesAndOffers", testDrawWithDoorsPassesAndOffers}, {"AccessCodes", testAccessCodes},
		{"Shops", testShops}, {"CampaignResults", testCampaignResults}, {"CampaignRecipientsAsFile", testCampaignRecipientsAsFile},
		{"CampaignTellsWhoSleeps", testCampaignTellsWhoSleeps}, {"CreateAndChangeCampaign", testCreateAndChangeCampaign},
		{"ListCampaigns", testListCampaigns}, {"CampaignFromDraftToInbox", testCampaignFromDraftToInbox}, {"TestSend", testTestSend},
		{"EitherVersionCanBeTested", testEitherVersionCanBeTested}, {"CampaignLimits", testCampaignLimits},
		{"ApprovalOverTheAPI", testApprovalOverTheAPI}, {"Claim", testClaim}, {"ClaimPass", testClaimPass}, {"Reviews", testReviews}, {"ClaimBodies", testClaimBodies}, {"Coupons", testCoupons},
		{"Payment", testPayment}, {"Qualify", testQualify}, {"CartOrders", testCartOrders}, {"CouponIsShown", testCouponIsShown}, {"TemplateNotices", testTemplateNotices},
		{"DeadLetters", testDeadLetters}, {"Explain", testExplain}, {"ImportUsers", testImportUsers}, {"Inbox", testInbox},
		{"IdempotencyReplay", testIdempotencyReplay}, {"ReservationOfAnEndedDrop", testReservationOfAnEndedDrop},
		{"Preferences", testPreferences}, {"Browsers", testBrowsers}, {"Redeem", testRedeem}, {"Reserve", testReserve}, {"ReserveRefusals", testReserveRefusals},
		{"Cancel", testCancel}, {"Standing", testStanding}, {"SeriesOfDrops", testSeriesOfDrops}, {"Recipes", testRecipes}, {"Waitlist", testWaitlist}, {"OffersOfAWaitlist", testOffersOfAWaitlist}, {"PublicTemplate", testPublicTemplate}, {"Segments", testSegments}, {"Webhooks", testWebhooks}, {"EventsOfAShop", testEventsOfAShop}, {"Lists", testLists},
		{"EraseUser", testEraseUser}, {"ServiceKeys", testServiceKeys}, {"RateLimit", testRateLimit}, {"Plainly", p.plainly},
		{"Stream", p.stream}, {"Rest", p.rest},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}
