// Calls a Tensorlet server in each of the four modes of gRPC, and checks the answers.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"example.com/tensorlet/go_client/gen/inference"
	"example.com/tensorlet/go_client/gen/inferencev1"
)

// The library refuses answers over 4 MiB unless told otherwise; this is the server's limit.
const maxBytes = 64 << 20

var address = flag.String("address", "127.0.0.1:50051", "HOST:PORT of the server")

func main() {
	log.SetFlags(0)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "go_client [--address HOST:PORT] [image|tokens|digits|chat ...]   (all four by default)")
		flag.PrintDefaults()
	}
	flag.Parse()
	modes := flag.Args()
	if len(modes) == 0 {
		modes = []string{"image", "tokens", "digits", "chat"}
	}

	conn, err := grpc.NewClient(*address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBytes), grpc.MaxCallSendMsgSize(maxBytes)))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	v1 := inferencev1.NewModelInferenceClient(conn)

	for _, mode := range modes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		switch mode {
		case "image":
			err = classifyImage(ctx, inference.NewInferenceServiceClient(conn))
		case "tokens":
			err = streamTokens(ctx, v1)
		case "digits":
			err = batchDigits(ctx, v1)
		case "chat":
			err = chat(ctx, v1)
		default:
			err = errors.New("no such mode: the modes are image, tokens, digits and chat")
		}
		cancel()
		if err != nil {
			log.Fatalf("%s: %v", mode, err)
		}
	}
}

// classifyImage sends one picture as a tensor (unary).
func classifyImage(ctx context.Context, client inference.InferenceServiceClient) error {
	image := make([]float32, 224*224*3)
	for i := range image {
		image[i] = float32(i) / float32(len(image))
	}
	start := time.Now()
	response, err := client.Predict(ctx, &inference.InferenceRequest{
		ModelName: "image_classifier_v1",
		Inputs:    []*inference.TensorData{floatTensor(image, 1, 224, 224, 3)},
	})
	if err != nil {
		return err
	}
	fmt.Printf("round trip %.1f ms, in the server %d ms\n", float64(time.Since(start).Microseconds())/1000, response.LatencyMs)

	if len(response.Outputs) != 1 {
		return fmt.Errorf("%d outputs came, 1 was expected", len(response.Outputs))
	}
	probabilities, err := floats(response.Outputs[0])
	if err != nil {
		return err
	}
	best, total := 0, 0.0
	for i, p := range probabilities {
		total += float64(p)
		if p > probabilities[best] {
			best = i
		}
	}
	if len(probabilities) != 10 || math.Abs(total-1) > 1e-3 {
		return fmt.Errorf("not ten probabilities: %v", probabilities)
	}
	fmt.Printf("class %d with probability %.3f\n", best, probabilities[best])
	return nil
}

// streamTokens prints a language model's tokens as they come (server streaming).
func streamTokens(ctx context.Context, client inferencev1.ModelInferenceClient) error {
	const prompt, maxTokens = "Emma was", 40
	stream, err := client.StreamPredict(ctx, &inferencev1.PredictRequest{
		ModelId:   "austen",
		Params:    map[string]string{"prompt": prompt, "seed": "7"},
		MaxTokens: maxTokens,
	})
	if err != nil {
		return err
	}
	fmt.Print(prompt)
	next, ended := uint32(0), false
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if chunk.Index != next || ended {
			return fmt.Errorf("chunk %d came where %d was expected", chunk.Index, next)
		}
		next, ended = next+1, chunk.IsFinal
		fmt.Print(chunk.Token)
	}
	fmt.Println()
	if !ended {
		return errors.New("no chunk was marked final")
	}
	// The server's figures come after the last token, as trailing metadata.
	trailer := stream.Trailer()
	for _, name := range []string{"tokens", "time-to-first-token-ms", "latency-ms"} {
		if len(trailer[name]) != 1 {
			return fmt.Errorf("no trailer %s: %v", name, trailer)
		}
		fmt.Printf("%s: %s\n", name, trailer[name][0])
	}
	if count, err := strconv.Atoi(trailer["tokens"][0]); err != nil || count < 1 || count > maxTokens {
		return fmt.Errorf("tokens: %q, at most %d were asked for", trailer["tokens"][0], maxTokens)
	}
	return nil
}

// batchDigits sends a stream of images and gets one answer for all (client streaming).
func batchDigits(ctx context.Context, client inferencev1.ModelInferenceClient) error {
	// The messages have no field for the function's name: it goes into the call's metadata.
	ctx = metadata.AppendToOutgoingContext(ctx, "model-id", "digits")
	stream, err := client.BatchPredict(ctx)
	if err != nil {
		return err
	}
	const count = 32
	for i := 0; i < count; i++ {
		vector := &inferencev1.FeatureVector{Id: fmt.Sprintf("image-%d", i), Features: draw(i % 2)}
		if err := stream.Send(vector); err != nil {
			break // the reason comes with the answer
		}
	}
	result, err := stream.CloseAndRecv()
	if err != nil {
		return err
	}
	if result.TotalProcessed != count || len(result.Results) != count {
		return fmt.Errorf("%d answers of %d", result.TotalProcessed, count)
	}
	for i, answer := range result.Results {
		best := 0
		for digit, p := range answer.OutputTensor {
			if p > answer.OutputTensor[best] {
				best = digit
			}
		}
		if len(answer.OutputTensor) != 10 || best != i%2 {
			return fmt.Errorf("image %d shows %d and was read as %d: %v", i, i%2, best, answer.OutputTensor)
		}
	}
	fmt.Printf("%d images, all read rightly\n", result.TotalProcessed)
	return nil
}

// chat sends a heartbeat and two turns of one session (bidirectional streaming).
func chat(ctx context.Context, client inferencev1.ModelInferenceClient) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "model-id", "austen", "param-max_tokens", "24", "param-seed", "7")
	stream, err := client.ChatStream(ctx)
	if err != nil {
		return err
	}
	// A message without content is a heartbeat: it is answered at once and is no turn of the conversation.
	if err := stream.Send(&inferencev1.UserMessage{}); err != nil && !errors.Is(err, io.EOF) {
		return err // io.EOF says only that the stream has ended: Recv knows why
	}
	pong, err := stream.Recv()
	if err != nil {
		return err
	}
	session := pong.SessionId // we named no session, so the server made one
	if session == "" || pong.Content != "" || pong.FinishReason {
		return fmt.Errorf("not a heartbeat's answer: %v", pong)
	}
	for _, content := range []string{"Emma was", "Mr. Darcy said"} {
		fmt.Println(">", content)
		if err := stream.Send(&inferencev1.UserMessage{SessionId: session, Content: content}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		answer := ""
		for finished := false; !finished; {
			piece, err := stream.Recv()
			if err != nil {
				return err
			}
			if piece.SessionId != session {
				return fmt.Errorf("a piece of session %q came", piece.SessionId)
			}
			fmt.Print(piece.Content)
			answer += piece.Content
			finished = piece.FinishReason
		}
		fmt.Println()
		if answer == "" {
			return errors.New("an empty answer")
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the stream did not end: %v", err)
	}
	return nil
}

// floatTensor packs numbers as NumPy's tobytes() would.
func floatTensor(values []float32, shape ...int32) *inference.TensorData {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return &inference.TensorData{Data: data, Shape: shape, Dtype: "float32"}
}

func floats(tensor *inference.TensorData) ([]float32, error) {
	if tensor.Dtype != "float32" {
		return nil, fmt.Errorf("a tensor of %s came, float32 was expected", tensor.Dtype)
	}
	values := make([]float32, len(tensor.Data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(tensor.Data[4*i:]))
	}
	return values, nil
}

// draw makes a 0 (a ring) or a 1 (a stroke) of 28 x 28 pixels in 0..1.
func draw(digit int) []float32 {
	pixels := make([]float32, 0, 28*28)
	for row := 0; row < 28; row++ {
		for column := 0; column < 28; column++ {
			x, y := float64(column)-13.5, float64(row)-13.5
			distance := math.Abs(math.Hypot(x/0.75, y) - 8)
			if digit == 1 {
				distance = 9
				if math.Abs(y) < 9 {
					distance = math.Abs(x)
				}
			}
			pixels = append(pixels, float32(math.Max(0, math.Min(1, 2.5-distance))))
		}
	}
	return pixels
}
