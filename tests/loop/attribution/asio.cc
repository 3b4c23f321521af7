/* asio.cc PORT TRUTH: a line server in coroutines on Asio.  SPDX-License-Identifier: ISC */
#include <asio.hpp>
#include <string>

#include "truth.h"

using asio::ip::tcp;

static asio::awaitable<void> serve(tcp::socket socket)
{
	static int count;
	const int client = socket.remote_endpoint().port();
	std::string text;
	for (;;) {
		std::error_code error;
		const auto bytes = co_await asio::async_read_until(
		    socket, asio::dynamic_buffer(text), '\n', asio::redirect_error(asio::use_awaitable, error));
		if (error)
			co_return;
		const std::string line = text.substr(0, bytes);
		text.erase(0, bytes);
		const double duration = get_duration(line.c_str());
		count++;
		for (int hops = !line.rfind("get hop", 0) ? 1 : !line.rfind("get mix", 0) ? count % 4 : 0; hops > 0; hops--)
			co_await asio::post(asio::use_awaitable);
		if (!line.rfind("get later", 0)) {
			asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
			co_await timer.async_wait(asio::use_awaitable);
		}
		if (!is_after(line.c_str()))
			work(client, duration);
		co_await asio::async_write(socket, asio::buffer("END\r\n", 5), asio::redirect_error(asio::use_awaitable, error));
		if (is_after(line.c_str()))
			work(client, duration);
	}
}

static asio::awaitable<void> accept_clients(unsigned short port)
{
	auto executor = co_await asio::this_coro::executor;
	tcp::acceptor acceptor(executor, {asio::ip::address_v4::loopback(), port});
	for (;;)
		asio::co_spawn(executor, serve(co_await acceptor.async_accept(asio::use_awaitable)), asio::detached);
}

int main(int, char **words)
{
	asio::io_context context(1);
	begin_truth(words[2]);
	asio::co_spawn(context, accept_clients(static_cast<unsigned short>(std::atoi(words[1]))), asio::detached);
	context.run();
	return 0;
}
