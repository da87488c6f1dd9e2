package pushtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// WeChat imitates cgi-bin/stable_token and cgi-bin/message/subscribe/send of WeChat for
// one mini program: each acceptance of wx.requestSubscribeMessage is good for one message.
type WeChat struct {
	pushes
	// AppID and Secret are the mini program's, Template is its subscription message.
	AppID, Secret, Template string
	// Fields are the fields of the message.
	Fields []string
	// Now is its clock.
	Now func() time.Time
	// Issued counts the calls of stable_token.
	Issued atomic.Int64

	state    sync.Mutex
	accepted map[string]int // by openid
	token    string
	ends     time.Time
	before   string // the token before, which is good for five minutes more
	until    time.Time
	serial   int
}

// NewWeChat starts an imitation; close it with Close.
func NewWeChat() *WeChat {
	w := &WeChat{AppID: "wx0123456789abcdef", Secret: "0123456789abcdef0123456789abcdef", Template: "45p6v5_cjJULly04Ms5KpRMmy65nXD2IVlZ0rWytrIs",
		Fields: []string{"thing1", "time2", "thing3"}, Now: time.Now, accepted: map[string]int{}}
	w.Start(w)
	return w
}

// Accept records that the user has accepted wx.requestSubscribeMessage once.
func (w *WeChat) Accept(openID string) {
	w.state.Lock()
	defer w.state.Unlock()
	w.accepted[openID]++
}

// Revoke makes the access token invalid, as a forced refresh by another program does.
func (w *WeChat) Revoke() {
	w.state.Lock()
	defer w.state.Unlock()
	w.token, w.before = "", ""
}

// rid is the id of a request as the answers have it.
const rid = " rid: 64229bc2-48d0e8b1-2008ed9b"

func refuseWeChat(to http.ResponseWriter, code int, message string) {
	_, _ = fmt.Fprintf(to, `{"errcode":%d,"errmsg":%q}`, code, message+rid)
}

// ServeHTTP answers one call.
func (w *WeChat) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	to.Header().Set("Content-Type", "application/json; encoding=utf-8")
	if r.Method != http.MethodPost {
		refuseWeChat(to, 43002, "require POST method")
		return
	}
	switch r.URL.Path {
	case "/cgi-bin/stable_token":
		w.issue(to, r)
	case "/cgi-bin/message/subscribe/send":
		w.send(to, r)
	default:
		to.WriteHeader(http.StatusNotFound)
	}
}

// issue returns the same token until five minutes before its end.
func (w *WeChat) issue(to http.ResponseWriter, r *http.Request) {
	w.Issued.Add(1)
	var in struct {
		Grant  string `json:"grant_type"`
		AppID  string `json:"appid"`
		Secret string `json:"secret"`
	}
	_ = json.NewDecoder(http.MaxBytesReader(to, r.Body, 64<<10)).Decode(&in)
	switch {
	case in.Grant != "client_credential":
		refuseWeChat(to, 40002, "invalid grant_type")
		return
	case in.AppID != w.AppID:
		refuseWeChat(to, 40013, "invalid appid")
		return
	case in.Secret != w.Secret:
		refuseWeChat(to, 40125, "invalid appsecret, view more at https://mmbizurl.cn/s/LpK1KoAEz")
		return
	}
	w.state.Lock()
	defer w.state.Unlock()
	now := w.Now()
	if w.token == "" || !now.Add(5*time.Minute).Before(w.ends) {
		w.before, w.until = w.token, now.Add(5*time.Minute)
		w.serial++
		w.token, w.ends = "72_"+strings.Repeat("a", 100)+strconv.Itoa(w.serial), now.Add(2*time.Hour)
	}
	_, _ = fmt.Fprintf(to, `{"access_token":%q,"expires_in":%d}`, w.token, int(w.ends.Sub(now)/time.Second))
}

func (w *WeChat) send(to http.ResponseWriter, r *http.Request) {
	w.state.Lock()
	defer w.state.Unlock()
	switch access := r.URL.Query().Get("access_token"); {
	case access == "":
		refuseWeChat(to, 41001, "access_token missing")
		return
	case access == w.token && w.Now().Before(w.ends), access == w.before && w.Now().Before(w.until):
	case access == w.token:
		refuseWeChat(to, 42001, "access_token expired")
		return
	default:
		refuseWeChat(to, 40001, "invalid credential, access_token is invalid or not latest, could get access_token by getStableAccessToken, more details at https://mmbizurl.cn/s/JtxxFh33r")
		return
	}
	var in struct {
		ToUser   string `json:"touser"`
		Template string `json:"template_id"`
		Page     string `json:"page"`
		Version  string `json:"miniprogram_state"`
		Lang     string `json:"lang"`
		Data     map[string]struct {
			Value string `json:"value"`
		} `json:"data"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(to, r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		refuseWeChat(to, 47001, "data format error")
		return
	}
	if fault, found := w.Fault(in.ToUser); found {
		w.answer(to, fault)
		return
	}
	switch {
	case len(in.ToUser) != 28:
		refuseWeChat(to, 40003, "invalid openid")
		return
	case in.Template != w.Template:
		refuseWeChat(to, 40037, "invalid template_id")
		return
	case strings.Contains(in.Page, "missing"):
		refuseWeChat(to, 41030, "invalid page")
		return
	case len(in.Data) != len(w.Fields):
		refuseWeChat(to, 47003, "argument invalid! data")
		return
	}
	for _, name := range w.Fields {
		if !WeChatAccepts(name, in.Data[name].Value) {
			refuseWeChat(to, 47003, "argument invalid! data."+name+".value invalid")
			return
		}
	}
	if w.accepted[in.ToUser] == 0 {
		refuseWeChat(to, 43101, "user refuse to accept the msg")
		return
	}
	w.accepted[in.ToUser]--
	body, _ := json.Marshal(in)
	w.accept(Push{Token: in.ToUser, Header: r.Header.Clone(), Body: body})
	_, _ = fmt.Fprint(to, `{"errcode":0,"errmsg":"ok","msgid":2863287419}`)
}

// answer is a fault: a status of HTTP, or a code of WeChat in Reason.
func (w *WeChat) answer(to http.ResponseWriter, f Fault) {
	if f.Status != 0 && f.Status != http.StatusOK {
		to.WriteHeader(f.Status)
		return
	}
	code, _ := strconv.Atoi(f.Reason)
	refuseWeChat(to, code, map[int]string{-1: "system error", 45009: "reach max api daily quota limit", 45011: "api minute-quota reach limit mustslower retry next minute",
		48001: "api unauthorized"}[code])
}

var wholeTime = regexp.MustCompile(`^(\d{4}(年\d{1,2}月\d{1,2}日|[-/.]\d{1,2}[-/.]\d{1,2}) )?\d{1,2}:\d{2}(:\d{2})?$`)

// WeChatAccepts reports whether the value fits WeChat's table of values (订阅消息参数值内容限制说明).
func WeChatAccepts(name, value string) bool {
	if value == "" || strings.ContainsFunc(value, unicode.IsControl) {
		return false
	}
	n := utf8.RuneCountInString(value)
	only := func(of func(r rune) bool) bool {
		return !strings.ContainsFunc(value, func(r rune) bool { return !of(r) })
	}
	switch strings.TrimRight(name, "0123456789") {
	case "thing":
		return n <= 20
	case "character_string":
		return n <= 32 && only(func(r rune) bool { return r > ' ' && r < unicode.MaxASCII })
	case "number":
		_, err := strconv.ParseFloat(value, 64)
		return n <= 32 && err == nil
	case "letter":
		return n <= 32 && only(func(r rune) bool { return r < unicode.MaxASCII && unicode.IsLetter(r) })
	case "phrase":
		return n <= 5 && only(func(r rune) bool { return unicode.Is(unicode.Han, r) })
	case "name":
		if strings.ContainsFunc(value, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			return n <= 10
		}
		return n <= 20
	case "time", "date":
		return wholeTime.MatchString(value)
	}
	return true
}
