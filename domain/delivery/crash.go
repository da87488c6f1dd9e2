package delivery

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// A Crash is a panic while a message was made or sent.
type Crash struct {
	// What describes the panic without any value that may come from a message: the text of a
	// runtime error, otherwise only the type of the panic's value.
	What  string
	Stack []byte
}

// Isolated calls send, which hands one message over, and returns its answer. If send panics, the
// answer is Permanent for that message alone.
func Isolated(send func() Result) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = crashed(p)
		}
	}()
	return send()
}

// crashed returns the answer for a message that made its sender panic with p. It must be called
// while the panic is being recovered from, because it records the stack.
func crashed(p any) Result {
	c := &Crash{What: fmt.Sprintf("a panic of type %T", p), Stack: debug.Stack()}
	if err, ok := p.(interface {
		error
		RuntimeError()
	}); ok {
		c.What = DetailOf(err.Error())
	}
	return Result{Status: Permanent, Detail: DetailOf("the sender failed on this message: " + c.What), Crash: c}
}

// crashReports reports every panic of one run once.
type crashReports struct {
	channel Channel
	crashed func(c Channel, crash Crash) // [Service.Crashed]
	told    sync.Map                     // the panics that were reported
}

// report reports a panic unless this run has reported the same one.
func (r *crashReports) report(c *Crash) {
	if c == nil || r.crashed == nil {
		return
	}
	if _, told := r.told.LoadOrStore(c.What, true); !told {
		r.crashed(r.channel, *c)
	}
}
