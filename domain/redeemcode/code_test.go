package redeemcode

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/musttest"
)

// testKeys holds two keys that are not secret.
func testKeys(t testing.TB) *Keyring {
	t.Helper()
	one := base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for tests one"))
	two := base64.RawURLEncoding.EncodeToString([]byte("a key of 32 bytes, for tests two"))
	k, err := ParseKeys("1:" + one + ", 2:" + two)
	musttest.OK(t, err)
	return k
}

func code(t testing.TB, k *Keyring, id KeyID, s Serial) Code {
	t.Helper()
	c, err := k.Code(id, s)
	musttest.OK(t, err)
	return c
}

// TestVectors compares codes that were once printed with their serial numbers. If
// it fails, customers hold codes on paper that no longer work: change the program,
// not the file.
func TestVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/codes.json")
	musttest.OK(t, err)
	var vectors []struct {
		Key    KeyID  `json:"key"`
		Serial Serial `json:"serial"`
		Code   string `json:"code"`
	}
	musttest.OK(t, json.Unmarshal(raw, &vectors))
	if len(vectors) < 10 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	k := testKeys(t)
	for _, v := range vectors {
		if got := code(t, k, v.Key, v.Serial).Text(); got != v.Code {
			t.Errorf("key %d serial %d is %s, was once %s", v.Key, v.Serial, got, v.Code)
		}
		c, err := Parse(v.Code)
		musttest.OK(t, err)
		if s, err := k.Serial(c); s != v.Serial || err != nil {
			t.Errorf("%s reads as %d (%v), was once %d", v.Code, s, err, v.Serial)
		}
	}
}

func serials() *rapid.Generator[Serial] {
	return rapid.Map(rapid.Int64Range(1, int64(MaxSerial)), func(n int64) Serial { return Serial(n) })
}

// typings are ways to type one code.
var typings = []func(string) string{
	func(s string) string { return s },
	strings.ToLower,
	func(s string) string { return strings.ReplaceAll(s, "-", "") },
	func(s string) string { return " " + strings.ReplaceAll(s, "-", " ") + "\n" },
	func(s string) string { return strings.ReplaceAll(s, "-", "—") },
	func(s string) string { return strings.NewReplacer("0", "O", "1", "l").Replace(s) },
	func(s string) string { return strings.NewReplacer("0", "o", "1", "I", "V", "u").Replace(s) },
	func(s string) string {
		return strings.Map(func(r rune) rune { return r - '!' + '！' }, s)
	},
}

func TestRoundTrip(t *testing.T) {
	k := testKeys(t)
	rapid.Check(t, func(t *rapid.T) {
		id, s := KeyID(rapid.IntRange(1, 2).Draw(t, "key")), serials().Draw(t, "serial")
		c, err := k.Code(id, s)
		musttest.OK(t, err)
		typed := rapid.SampledFrom(typings).Draw(t, "typing")(c.Text())
		read, err := Parse(typed)
		if err != nil || read != c {
			t.Fatalf("%q reads as %q: %v", typed, read.Text(), err)
		}
		if got, err := k.Serial(read); got != s || err != nil {
			t.Fatalf("serial %d came back as %d: %v", s, got, err)
		}
	})
}

// TestBijection looks at every number of small domains: no two may meet.
func TestBijection(t *testing.T) {
	for half := uint(1); half <= 7; half++ {
		m := newMixer([]byte{byte(half)})
		seen := map[uint64]bool{}
		for v := range uint64(1) << (2 * half) {
			p := m.permute(v, half)
			if p >= 1<<(2*half) || seen[p] {
				t.Fatalf("half %d: %d maps to %d, which is taken or too large", half, v, p)
			}
			seen[p] = true
			if back := m.restore(p, half); back != v {
				t.Fatalf("half %d: %d came back as %d", half, v, back)
			}
		}
	}
}

// TestSpread: codes of consecutive serial numbers share no pattern that could be
// continued. Of 40 bits about 20 differ.
func TestSpread(t *testing.T) {
	k := testKeys(t)
	total := 0
	const n = 2000
	for s := Serial(1); s <= n; s++ {
		d := code(t, k, 1, s).body ^ code(t, k, 1, s+1).body
		bits := 0
		for ; d != 0; d &= d - 1 {
			bits++
		}
		total += bits
	}
	if mean := float64(total) / n; mean < 19.5 || mean > 20.5 {
		t.Errorf("neighbours differ in %.2f bits of 40", mean)
	}
}

// typos returns every text that differs from text by one wrong symbol, one missing
// or doubled symbol, or two exchanged symbols (up to two apart).
func typos(text string) []string {
	var list []string
	s := strings.ReplaceAll(text, "-", "")
	for i := range s {
		for _, r := range alphabet {
			if byte(r) != s[i] {
				list = append(list, s[:i]+string(r)+s[i+1:])
			}
		}
		list = append(list, s[:i]+s[i+1:], s[:i]+s[i:i+1]+s[i:])
		for gap := 1; gap <= 2 && i+gap < len(s); gap++ {
			if s[i] != s[i+gap] {
				b := []byte(s)
				b[i], b[i+gap] = b[i+gap], b[i]
				list = append(list, string(b))
			}
		}
	}
	return list
}

// TestSlips measures how many of two hundred thousand mistyped codes pass: none,
// since each passes with a probability of 2^-35 at most. The keys are fixed, so the
// outcome is fixed too.
func TestSlips(t *testing.T) {
	k := testKeys(t)
	tried := 0
	for s := Serial(1); s <= 400; s++ {
		for _, typed := range typos(code(t, k, 1+KeyID(s%2), s*7919).Text()) {
			tried++
			c, err := Parse(typed)
			if err != nil {
				continue
			}
			if got, err := k.Serial(c); err == nil {
				t.Errorf("%s passes as serial %d", typed, got)
			}
		}
	}
	if tried < 200_000 {
		t.Errorf("only %d slips were tried", tried)
	}
}

// TestCheckIsEven measures false accepts on the first 10 bits of the check value,
// where they are frequent enough. 2^-10 of the invented codes agree in these bits.
func TestCheckIsEven(t *testing.T) {
	k := testKeys(t)
	p := k.cipher(1).pool.Get().(*pair)
	const n = 1 << 18
	agree := 0
	for i := range uint64(n) {
		if p.check.mix(1, i*0x9e3779b9&(1<<SerialBits-1), CheckBits)>>(CheckBits-10) == i%1024 {
			agree++
		}
	}
	if want := n >> 10; agree < want*7/10 || agree > want*13/10 {
		t.Errorf("%d of %d agree in ten bits, expected about %d", agree, n, want)
	}
}

func TestParseRefuses(t *testing.T) {
	k := testKeys(t)
	good := code(t, k, 1, 1).Text()
	for _, typed := range []string{"", "-", good[:18], good + "0", good + good, "1234", strings.Repeat("-", 500), strings.Repeat("0", 5000),
		"!!!!-!!!!-!!!!-!!!!", "\xff" + good, good[:15] + "×" + good[16:], "Ａ", "'; drop table coupons; --", good + "\x00"} {
		if c, err := Parse(typed); !errors.Is(err, ErrInvalid) || c != (Code{}) {
			t.Errorf("Parse(%q) = %q, %v", typed, c.Text(), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1234-5678-9ABC-DEFG")
	f.Add("ｏＯｌI－ 0")
	k := testKeys(f)
	f.Fuzz(func(t *testing.T, typed string) {
		c, err := Parse(typed)
		if err != nil {
			return
		}
		if again, err := Parse(c.Text()); err != nil || again != c {
			t.Errorf("%q reads as %q and then as %q", typed, c.Text(), again.Text())
		}
		if s, err := k.Serial(c); err == nil && code(t, k, c.Key(), s) != c {
			t.Errorf("%q opens as %d, which is another code", typed, s)
		}
	})
}

func TestKeys(t *testing.T) {
	good := strings.Repeat("QUJD", 11) // 33 bytes
	for _, c := range []struct {
		text string
		want string // part of the error; "" = none
	}{
		{"", ""}, {" ", ""}, {"1:" + good, ""}, {"31:" + good + " , 4:" + good, ""},
		{"0:" + good, "entry 1"}, {"32:" + good, "entry 1"}, {"1:" + good + ",", "entry 2"}, {"1:" + good + ",1:" + good, "twice"},
		{good, "entry 1"}, {"1:QUJD", "16 to 128 bytes"}, {"2:%%%", "not base64"}, {"1:" + strings.Repeat("QUJD", 50), "16 to 128"},
	} {
		k, err := ParseKeys(c.text)
		switch {
		case c.want == "" && (err != nil || k == nil):
			t.Errorf("%q: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		case err != nil && strings.Contains(err.Error(), good):
			t.Error("the error quotes the key")
		}
	}
}

func TestRotation(t *testing.T) {
	both := testKeys(t)
	if id, err := both.Newest(); id != 2 || err != nil {
		t.Errorf("the newest key is %d, %v", id, err)
	}
	old := code(t, both, 1, 5)
	later, err := ParseKeys("2:" + base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for tests two")))
	musttest.OK(t, err)
	if _, err := later.Serial(old); !errors.Is(err, ErrInvalid) {
		t.Errorf("a code of a key that was taken away: %v", err)
	}
	if _, err := later.Code(1, 5); !errors.Is(err, ErrKeyMissing) {
		t.Errorf("making a code with a key that was taken away: %v", err)
	}
	if s, err := later.Serial(code(t, both, 2, 5)); s != 5 || err != nil {
		t.Errorf("a code of the key that stayed: %d, %v", s, err)
	}
	forged := old
	forged.key = 2
	if _, err := both.Serial(forged); !errors.Is(err, ErrInvalid) {
		t.Errorf("a code moved to another key: %v", err)
	}
	var none *Keyring
	for _, k := range []*Keyring{none, {}} {
		if _, err := k.Serial(old); !errors.Is(err, ErrInvalid) {
			t.Errorf("without keys: %v", err)
		}
	}
	if _, err := (&Keyring{}).Newest(); !errors.Is(err, ErrNoKeys) {
		t.Errorf("without keys: %v", err)
	}
}

func TestSerialsOutOfRange(t *testing.T) {
	for _, s := range []Serial{0, -1, MaxSerial + 1} {
		if c, err := testKeys(t).Code(1, s); err == nil {
			t.Errorf("serial %d has the code %s", s, c.Text())
		}
	}
}

func TestCodesStayOutOfLogs(t *testing.T) {
	c := code(t, testKeys(t), 1, 1)
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c), fmt.Sprint([]Code{c}), fmt.Sprintf("%+v", struct{ C Code }{c})} {
		if strings.Contains(s, c.Text()) || strings.Contains(s, fmt.Sprint(c.body)) {
			t.Errorf("a code is printed: %s", s)
		}
	}
	//lint:ignore SA9005 that nothing is written is what is tested
	if raw, err := json.Marshal(c); err != nil || string(raw) != "{}" {
		t.Errorf("as JSON: %s, %v", raw, err)
	}
}

func BenchmarkCode(b *testing.B) {
	k := testKeys(b)
	for i := 0; b.Loop(); i++ {
		if _, err := k.Code(1, Serial(i%1e9+1)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForged(b *testing.B) {
	k, c := testKeys(b), code(b, testKeys(b), 1, 1)
	c.check ^= 1
	for b.Loop() {
		if _, err := k.Serial(c); err == nil {
			b.Fatal("a forged code passes")
		}
	}
}
