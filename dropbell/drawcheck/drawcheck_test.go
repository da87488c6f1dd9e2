package drawcheck

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/domain/draw"
)

const (
	fair = "../../docs/fair"
	// signature1000 is the signature of round 1000 of drand's quicknet.
	signature1000 = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
	// vectorName is the name of the test vectors' key, which is Ed25519 with the seed 00 01 … 1f.
	vectorName = "vectors.example"
)

// TestVectors: the files of docs/fair are the draw that the protocol makes of their inputs, and
// the command finds them right.
func TestVectors(t *testing.T) {
	seed := make([]byte, 32)
	for i := range seed {
		seed[i] = byte(i)
	}
	secret, public := keys(t, vectorName, seed)
	closes := draw.RoundTime(1000).Add(-draw.RoundAfter)
	card := draw.Card{Drop: 42, Version: 1, OpensAt: closes.Add(-time.Hour), ClosesAt: closes, Stock: 3, MaxWeight: 3,
		Source: draw.Source{Kind: draw.Drand, Detail: draw.QuicknetChain}, Round: 1000}
	var entries []draw.Entry
	for i := range 11 {
		h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
		entries = append(entries, draw.Entry{UserID: int64(i + 1), Ticket: draw.Ticket(h[:16]), Salt: draw.Salt(h[16:]), Weight: 1 + i%3})
	}
	p, receipt, err := operate(secret, card, entries, func(int64) string { return signature1000 })
	if err != nil {
		t.Fatal(err)
	}
	p.Key = public
	made, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"draw.json": string(made) + "\n", "receipt.txt": receipt} {
		file := filepath.Join(fair, name)
		if os.Getenv("DROPBELL_GOLDEN") != "" {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not the draw of its inputs (%v); DROPBELL_GOLDEN=1 writes it anew", file, err)
		}
	}
	code, said := run(t, filepath.Join(fair, "draw.json"), "--key", public, "--receipt", filepath.Join(fair, "receipt.txt"))
	if code != 0 || !strings.Contains(said, "round 1000 of drand") || !strings.Contains(said, "Its score") {
		t.Errorf("the vectors: %d\n%s", code, said)
	}
}

// run runs the command and returns its exit code and what it said.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	flags, rest := args[1:], args[:1]
	err := Main(t.Context(), append(flags, rest...), &out)
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	return config.ExitCode(err), out.String()
}

// example writes an example of n entries and its receipt.
func example(t *testing.T, n int) (file, receipt string) {
	t.Helper()
	file, receipt = filepath.Join(t.TempDir(), "draw.json"), filepath.Join(t.TempDir(), "receipt.txt")
	var out bytes.Buffer
	if err := Main(t.Context(), []string{"--example", fmt.Sprint(n), "--receipt", receipt}, &out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, receipt
}

func TestFilesAndServers(t *testing.T) {
	file, receipt := example(t, draw.ChunkRows+10)
	if code, said := run(t, file, "--receipt", receipt); code != 0 || !strings.Contains(said, "local beacon") {
		t.Errorf("an example: %d\n%s", code, said)
	}
	raw, err := os.ReadFile(file)
	var p draw.Published
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	list := p.List
	p.List = nil
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/draws/1/proof":
			_ = json.NewEncoder(w).Encode(p)
		case "/draws/1/list":
			_, _ = w.Write(list[r.FormValue("chunk")[0]-'0'])
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	if code, said := run(t, server.URL+"/draws/1", "--receipt", receipt); code != 0 {
		t.Errorf("a server: %d\n%s", code, said)
	}
	if code, said := run(t, server.URL+"/draws/2"); code != config.ExitMistake || !strings.Contains(said, "404") {
		t.Errorf("a draw that does not exist: %d\n%s", code, said)
	}
	list[1] = list[1][draw.RowSize:]
	if code, said := run(t, server.URL+"/draws/1"); code != config.ExitFailed || !strings.Contains(said, "WRONG  The list has 65545 tickets") {
		t.Errorf("a list without a ticket: %d\n%s", code, said)
	}
	for _, args := range [][]string{{"nowhere.json"}, {file, "--receipt", "nowhere"}, {file, "--example", "3"}} {
		if code, said := run(t, args...); code != config.ExitMistake {
			t.Errorf("%v: %d\n%s", args, code, said)
		}
	}
}

// TestThirdVerifier: a script with @noble/curves, which shares no code with Dropbell, agrees.
func TestThirdVerifier(t *testing.T) {
	modules := localstack.NPMPackages(t, fair) // skips where there is no Node.js
	home := t.TempDir()
	script, err := os.ReadFile(filepath.Join(fair, "verify.mjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "verify.mjs"), script, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(home, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(script), "\n"); lines > 60 {
		t.Errorf("the script has %d lines", lines)
	}
	check := func(file string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "node", filepath.Join(home, "verify.mjs"), file).CombinedOutput()
		return string(out), err
	}
	made, _ := example(t, 1000)
	vectors, err := filepath.Abs(filepath.Join(fair, "draw.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{made, vectors} {
		if said, err := check(file); err != nil || !strings.Contains(said, "tickets win") {
			t.Errorf("%s: %v\n%s", file, err, said)
		}
	}
	raw, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	var p draw.Published
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	p.List[0][48]++
	raw, err = json.Marshal(p)
	if err == nil {
		err = os.WriteFile(made, raw, 0o600)
	}
	if said, wrong := check(made); err != nil || wrong == nil || !strings.Contains(said, "WRONG the root of 11 tickets") {
		t.Errorf("a changed weight: %v %v\n%s", err, wrong, said)
	}
}

// keys are the secret and the public key of an Ed25519 seed, as signed notes write them.
func keys(t *testing.T, name string, seed []byte) (secret, public string) {
	t.Helper()
	public, err := note.NewEd25519VerifierKey(name, ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return "PRIVATE+KEY+" + name + "+" + strings.Split(public, "+")[1] + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed...)), public
}
