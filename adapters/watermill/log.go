package watermill

import (
	"context"
	"log/slog"

	library "github.com/ThreeDotsLabs/watermill"
)

// logAdapter passes the library's messages to slog, one level lower than the library's: the
// library logs every subscription as Info, and errors from which it recovers as Error.
type logAdapter struct{ logger *slog.Logger }

func (l logAdapter) log(level slog.Level, msg string, fields library.LogFields, args ...any) {
	if ctx := context.Background(); l.logger.Enabled(ctx, level) {
		for key, value := range fields {
			args = append(args, key, value)
		}
		l.logger.Log(ctx, level, msg, append(args, "library", "watermill")...)
	}
}

func (l logAdapter) Error(msg string, err error, fields library.LogFields) {
	l.log(slog.LevelWarn, msg, fields, "error", err)
}
func (l logAdapter) Info(msg string, fields library.LogFields)  { l.log(slog.LevelDebug, msg, fields) }
func (l logAdapter) Debug(msg string, fields library.LogFields) { l.log(slog.LevelDebug, msg, fields) }
func (l logAdapter) Trace(string, library.LogFields)            {}

func (l logAdapter) With(fields library.LogFields) library.LoggerAdapter {
	args := make([]any, 0, 2*len(fields))
	for key, value := range fields {
		args = append(args, key, value)
	}
	return logAdapter{l.logger.With(args...)}
}
