package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/localstack"
	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
	"dropbell/web/console/consoletest"
)

const (
	exampleSecret     = "a-secret-of-32-bytes-for-tests-only"
	exampleHookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// example is a running program below examples/.
type example struct {
	*testing.T
	server, address, coupon string
}

// TestExamples runs each example as its README says, next to both programs. A user claims with a
// token of the example and pays there with the coupon, and webhooks are verified.
func TestExamples(t *testing.T) {
	server := serveAll(t, "AUTH_JWT_SECRET", exampleSecret)
	drop := openDrop(t, server)
	t.Run("go-backend", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "backend")
		if err := localstack.BuildProgram(t.Context(), program, "dropbell/examples/go-backend"); err != nil {
			t.Fatal(err)
		}
		startExample(t, server, exec.Command(program)).drive("1001", drop)
	})
	t.Run("node-shop", func(t *testing.T) {
		sdk := filepath.Join("..", "sdk", "typescript")
		localstack.NPMPackages(t, sdk) // skips where there is no Node.js
		dir := t.TempDir()
		// What `npm install` makes of the dependency.
		if err := os.CopyFS(filepath.Join(dir, "node_modules", "@dropbell", "sdk"), os.DirFS(sdk)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"package.json", "server.js"} {
			content, err := os.ReadFile(filepath.Join("..", "examples", "node-shop", name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), content, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("node", "server.js")
		cmd.Dir = dir
		e := startExample(t, server, cmd)
		e.drive("1002", drop)
		if status, page := e.ask("GET", "/?drop="+drop, "", nil); status != 200 || !strings.Contains(page, `<dropbell-claim template="`+drop+`"`) {
			t.Errorf("the page: %d %s", status, page)
		}
	})
}

// openDrop publishes a drop that opens after a moment and returns its id. On a slow machine the
// drop may be published only after its opening; openDrop then tries a longer moment.
func openDrop(t *testing.T, server string) string {
	t.Helper()
	admin, err := dropbell.New(server, dropbell.ServiceKey(stepsKey))
	if err != nil {
		t.Fatal(err)
	}
	off, valid := int64(1000), int64(48)
	for seconds := 2; ; seconds *= 2 {
		opens := time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
		draft, err := admin.CreateTemplateWithResponse(t.Context(), nil, api.TemplateWish{ShopNumber: "10", Name: "20 off", Kind: "amount_off", AmountOff: &off,
			Currency: "CNY", Stock: 10, OpensAt: opens, ClosesAt: opens.Add(time.Hour), ValidHours: &valid})
		if err != nil {
			t.Fatal(err)
		}
		published, err := admin.PublishTemplateWithResponse(t.Context(), draft.JSON201.Id, nil, api.Reason{})
		if err != nil {
			t.Fatal(err)
		}
		if published.StatusCode() == http.StatusOK {
			return draft.JSON201.Id
		}
		if seconds > 100 {
			t.Fatalf("publishing: %s", published.Body)
		}
	}
}

func startExample(t *testing.T, server string, cmd *exec.Cmd) *example {
	t.Helper()
	port, err := localstack.FreePort(0)
	if err != nil {
		t.Fatal(err)
	}
	e := &example{T: t, server: server, address: fmt.Sprintf("127.0.0.1:%d", port)}
	out := &journal{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "ADDR="+e.address, "DROPBELL_URL="+server, "DROPBELL_KEY="+stepsKey,
		"DROPBELL_USER_SECRET="+exampleSecret, "DROPBELL_WEBHOOK_SECRET="+exampleHookSecret)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("the example said:\n%s", out)
		}
	})
	consoletest.Within(t, "the example listens", func() bool {
		answer, err := http.Get("http://" + e.address + "/dropbell-token")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusUnauthorized
	})
	return e
}

// drive goes the way of a user.
func (e *example) drive(user, drop string) {
	e.Helper()
	client, err := dropbell.New(e.server, func(context.Context) (string, error) {
		_, body := e.ask("GET", "/dropbell-token", user, nil)
		var answer struct{ Token string }
		return answer.Token, json.Unmarshal([]byte(body), &answer)
	})
	if err != nil {
		e.Fatal(err)
	}
	consoletest.Within(e.T, "the drop is open", func() bool {
		claimed, err := client.ClaimWithResponse(e.Context(), nil, api.ClaimWish{TemplateId: drop})
		if dropbell.Code(err) == "not_started" {
			return false
		}
		if err != nil {
			e.Fatal(err)
		}
		e.coupon = *claimed.JSON201.CouponId
		return true
	})
	order := func(id string) []byte {
		return fmt.Appendf(nil, `{"order_id":%q,"coupon_id":%q,"amount":1}`, id, e.coupon)
	}
	first, second := "A-"+user, "B-"+user
	if status, body := e.ask("POST", "/pay", "", order(first)); status != 401 {
		e.Errorf("paying without a user: %d %s", status, body)
	}
	if status, body := e.ask("POST", "/pay", "9"+user, order("C-"+user)); status != 409 || !strings.Contains(body, "coupon_not_usable") {
		e.Errorf("paying with the coupon of another user: %d %s", status, body)
	}
	if status, body := e.ask("POST", "/pay", user, order(first)); status != 200 || !strings.Contains(body, `"paid":5000`) {
		e.Errorf("paying: %d %s", status, body)
	}
	if status, body := e.ask("POST", "/pay", user, order(second)); status != 409 || !strings.Contains(body, "coupon_not_usable") {
		e.Errorf("paying twice: %d %s", status, body)
	}
	for secret, want := range map[string]int{exampleHookSecret: 204, "whsec_" + base64.StdEncoding.EncodeToString([]byte("another")): 401} {
		if status := e.hook(secret); status != want {
			e.Errorf("a webhook signed with %s: %d, want %d", secret, status, want)
		}
	}
}

// hook sends a webhook that is signed with the secret.
func (e *example) hook(secret string) int {
	e.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		e.Fatal(err)
	}
	body, now := []byte(`{"type":"coupon.used","timestamp":"2026-11-20T11:55:00Z","subject":"coupon/1","sequence":1,"data":{}}`), time.Now()
	signature, err := signer.Sign("msg_1", now, body)
	if err != nil {
		e.Fatal(err)
	}
	r, err := http.NewRequestWithContext(e.Context(), http.MethodPost, "http://"+e.address+"/hooks", bytes.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	r.Header.Set("webhook-id", "msg_1")
	r.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	r.Header.Set("webhook-signature", signature)
	status, _ := e.do(r)
	return status
}

// ask sends a request of the user to the example.
func (e *example) ask(method, path, user string, body []byte) (int, string) {
	e.Helper()
	r, err := http.NewRequestWithContext(e.Context(), method, "http://"+e.address+path, bytes.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	if user != "" {
		r.AddCookie(&http.Cookie{Name: "user", Value: user})
	}
	return e.do(r)
}

func (e *example) do(r *http.Request) (int, string) {
	e.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		e.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		e.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
