package pushtest

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// A Broadcast is an accepted broadcast.
type Broadcast struct {
	Channel string
	Header  http.Header
	Body    []byte
}

// Channels imitates Apple's broadcast channels by their published protocol: the management of
// channels, and broadcasts to them.
type Channels struct {
	apple *APNs

	mu         sync.Mutex
	open       map[string]bool
	made       int
	broadcasts []Broadcast
	faults     []Fault
}

// Channels returns the imitation of channels at the same address, with the same keys.
func (a *APNs) Channels() *Channels {
	c := &Channels{apple: a, open: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /1/apps/{app}/channels", c.answering(c.create))
	mux.HandleFunc("DELETE /1/apps/{app}/channels", c.answering(c.remove))
	mux.HandleFunc("POST /4/broadcasts/apps/{app}", c.answering(c.broadcast))
	a.channels.Store(mux)
	return c
}

// Fail makes the next requests be answered so, one each.
func (c *Channels) Fail(faults ...Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, faults...)
}

// Broadcasts returns the accepted broadcasts so far.
func (c *Channels) Broadcasts() []Broadcast {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Broadcast(nil), c.broadcasts...)
}

// Count returns how many channels there are, and how many were ever made.
func (c *Channels) Count() (open, made int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.made
}

// Drop removes every channel, as by hand.
func (c *Channels) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.open)
}

// answering makes the checks that apply to all requests.
func (c *Channels) answering(do func(w http.ResponseWriter, r *http.Request, body []byte) Fault) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		fault := c.apple.authorize(r)
		switch {
		case fault.Status != 0:
		case r.ProtoMajor != 2:
			fault = Fault{Status: http.StatusHTTPVersionNotSupported}
		case r.PathValue("app") != c.apple.Topic:
			fault = Fault{Status: 400, Reason: "TopicDisallowed"}
		case len(c.faults) > 0:
			fault, c.faults = c.faults[0], c.faults[1:]
		default:
			fault = do(w, r, body)
		}
		if fault.Status != 0 {
			c.apple.refuse(w, fault)
		}
	}
}

func (c *Channels) create(w http.ResponseWriter, _ *http.Request, body []byte) Fault {
	var in struct {
		Policy *int   `json:"message-storage-policy"`
		Type   string `json:"push-type"`
	}
	if json.Unmarshal(body, &in) != nil || in.Policy == nil || *in.Policy < 0 || *in.Policy > 1 || in.Type != "LiveActivity" {
		return Fault{Status: 400, Reason: "InvalidPushType"}
	}
	c.made++
	id := base64.StdEncoding.EncodeToString([]byte("channel " + strconv.Itoa(c.made)))
	c.open[id] = true
	w.Header().Set("apns-channel-id", id)
	w.WriteHeader(http.StatusCreated)
	return Fault{}
}

func (c *Channels) remove(w http.ResponseWriter, r *http.Request, _ []byte) Fault {
	id := r.Header.Get("apns-channel-id")
	if !c.open[id] {
		return Fault{Status: 400, Reason: "ChannelNotRegistered"}
	}
	delete(c.open, id)
	w.WriteHeader(http.StatusNoContent)
	return Fault{}
}

func (c *Channels) broadcast(w http.ResponseWriter, r *http.Request, body []byte) Fault {
	id := r.Header.Get("apns-channel-id")
	var in struct {
		APS struct {
			Timestamp int64           `json:"timestamp"`
			Event     string          `json:"event"`
			State     json.RawMessage `json:"content-state"`
		} `json:"aps"`
	}
	_, badExpiration := strconv.ParseInt(r.Header.Get("apns-expiration"), 10, 64)
	switch {
	case id == "":
		return Fault{Status: 400, Reason: "MissingChannelId"}
	case !c.open[id]:
		return Fault{Status: 400, Reason: "ChannelNotRegistered"}
	case r.Header.Get("apns-push-type") != "liveactivity":
		return Fault{Status: 400, Reason: "InvalidPushType"}
	case badExpiration != nil:
		return Fault{Status: 400, Reason: "BadExpirationDate"}
	case r.Header.Get("apns-priority") != "10" && r.Header.Get("apns-priority") != "5":
		return Fault{Status: 400, Reason: "BadPriority"}
	case len(body) > 5120:
		return Fault{Status: 413, Reason: "PayloadTooLarge"}
	case json.Unmarshal(body, &in) != nil || in.APS.Timestamp == 0 || in.APS.Event != "update" && in.APS.Event != "end" || len(in.APS.State) == 0:
		return Fault{Status: 400, Reason: "BadMessage"}
	}
	c.broadcasts = append(c.broadcasts, Broadcast{id, r.Header.Clone(), body})
	w.WriteHeader(http.StatusOK)
	return Fault{}
}
